import { Button, Modal, Select, TextInput } from '@mantine/core'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { send } from '@/api/client'
import { tokens as tokensQuery } from '@/api/queries'
import type { TokenView } from '@/api/types'
import { Async, Empty, ErrorNote, Panel } from '@/ui/Blocks'
import { Command } from '@/ui/Copy'
import { Table } from '@/ui/Table'
import { Ago } from '@/ui/Time'

export function Tokens() {
  const { t } = useTranslation()
  const client = useQueryClient()
  const query = useQuery(tokensQuery)
  const [making, setMaking] = useState(false)
  const revoke = useMutation({
    mutationFn: (id: string) => send('DELETE', `/tokens/${id}`),
    onSuccess: () => client.invalidateQueries({ queryKey: tokensQuery.queryKey }),
  })
  return (
    <Panel title={t('tokens')} actions={<Button onClick={() => setMaking(true)}>{t('token_new')}</Button>} flush>
      {revoke.error && <ErrorNote error={revoke.error} />}
      <Async query={query}>
        {(list) =>
          list.length === 0 ? (
            <Empty title={t('tokens_none')}>{t('tokens_none_how')}</Empty>
          ) : (
            <Table
              label={t('tokens')}
              rows={list}
              rowKey={(token) => token.id}
              columns={[
                {
                  id: 'label',
                  title: t('token_label'),
                  cell: (token) => token.label || <span className="mono dim">{token.id}</span>,
                },
                { id: 'created', title: t('col_created'), cell: (token) => <Ago us={token.created_us} /> },
                { id: 'used', title: t('token_used'), cell: (token) => <Ago us={token.last_used_us} /> },
                {
                  id: 'expires',
                  title: t('token_expires'),
                  cell: (token) => (token.expires_us ? <Ago us={token.expires_us} /> : t('never')),
                },
                {
                  id: 'revoke',
                  title: '',
                  right: true,
                  cell: (token) =>
                    token.revoked ? (
                      <span className="dim">{t('token_revoked')}</span>
                    ) : (
                      <Button
                        variant="subtle"
                        size="compact-xs"
                        c="var(--tone-red)"
                        onClick={() => revoke.mutate(token.id)}
                      >
                        {t('token_revoke')}
                      </Button>
                    ),
                },
              ]}
            />
          )
        }
      </Async>
      {making && <NewToken onClose={() => setMaking(false)} />}
    </Panel>
  )
}

const DAY = 86_400

function NewToken({ onClose }: { onClose: () => void }) {
  const { t } = useTranslation()
  const client = useQueryClient()
  const [label, setLabel] = useState('')
  const [days, setDays] = useState('90')
  const make = useMutation({
    mutationFn: () => send<TokenView>('POST', '/tokens', { label, expires_s: days ? Number(days) * DAY : null }),
    onSuccess: () => client.invalidateQueries({ queryKey: tokensQuery.queryKey }),
  })
  return (
    <Modal opened onClose={onClose} title={t('token_new')} closeButtonProps={{ 'aria-label': t('close') }}>
      {make.data?.secret ? (
        <>
          <p style={{ marginTop: 0 }}>{t('token_once')}</p>
          <Command text={make.data.secret} />
          <Button mt={16} onClick={onClose}>
            {t('close')}
          </Button>
        </>
      ) : (
        <form
          onSubmit={(event) => {
            event.preventDefault()
            make.mutate()
          }}
        >
          <TextInput
            label={t('token_label')}
            placeholder={t('token_label_hint')}
            value={label}
            onChange={(event) => setLabel(event.currentTarget.value)}
            data-autofocus
            mb={12}
          />
          <Select
            label={t('token_expires')}
            value={days}
            onChange={(value) => setDays(value ?? '90')}
            data={['7', '30', '90', '365'].map((n) => ({ value: n, label: t('days_n', { count: Number(n) }) }))}
            allowDeselect={false}
          />
          {make.error && <ErrorNote error={make.error} />}
          <Button type="submit" mt={16} loading={make.isPending}>
            {t('token_make')}
          </Button>
        </form>
      )}
    </Modal>
  )
}
