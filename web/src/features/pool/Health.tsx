import { Button, Modal } from '@mantine/core'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { send } from '@/api/client'
import { doctorHistory, doctor as doctorQuery, me } from '@/api/queries'
import type { NodeCheck } from '@/api/types'
import { sentence, word } from '@/i18n'
import { Async, Empty, ErrorNote, Panel } from '@/ui/Blocks'
import { Table } from '@/ui/Table'
import { Ago } from '@/ui/Time'

const TONES: Record<NodeCheck['verdict'], string> = { ok: 'green', warn: 'orange', bad: 'red' }
const ORDER: NodeCheck['verdict'][] = ['bad', 'warn', 'ok']

/** The last look of every check at every node, what is bad first; a press shows what was found before. */
export function Health() {
  const { t } = useTranslation()
  const client = useQueryClient()
  const query = useQuery(doctorQuery)
  const who = useQuery(me)
  const [open, setOpen] = useState<NodeCheck | null>(null)
  const look = useMutation({
    mutationFn: () => send<NodeCheck[]>('POST', '/doctor'),
    onSuccess: () => client.invalidateQueries({ queryKey: doctorQuery.queryKey }),
  })
  return (
    <Panel
      title={t('doctor')}
      actions={
        who.data?.admin && (
          <Button variant="default" loading={look.isPending} onClick={() => look.mutate()}>
            {t('doctor_look')}
          </Button>
        )
      }
      flush
    >
      {look.error && <ErrorNote error={look.error} />}
      <Async query={query}>
        {(found) =>
          found.length === 0 ? (
            <Empty title={t('doctor_none')} />
          ) : (
            <Checks label={t('doctor')} rows={[...found].sort(worstFirst)} onOpen={setOpen} />
          )
        }
      </Async>
      {open && <History of={open} onClose={() => setOpen(null)} />}
    </Panel>
  )
}

function worstFirst(a: NodeCheck, b: NodeCheck): number {
  return ORDER.indexOf(a.verdict) - ORDER.indexOf(b.verdict) || a.node.localeCompare(b.node)
}

interface ChecksProps {
  label: string
  rows: NodeCheck[]
  onOpen?: (check: NodeCheck) => void
}

function Checks({ label, rows, onOpen }: ChecksProps) {
  const { t } = useTranslation()
  return (
    <Table
      label={label}
      rows={rows}
      rowKey={(one) => `${one.node} ${one.check} ${one.time_us}`}
      columns={[
        { id: 'node', title: t('node'), cell: (one) => one.node },
        { id: 'check', title: t('doctor_check'), cell: (one) => <span className="mono">{one.check}</span> },
        {
          id: 'verdict',
          title: t('col_verdict'),
          cell: (one) => (
            <b style={{ fontWeight: 500, color: `var(--tone-${TONES[one.verdict]})` }}>
              {word('verdict', one.verdict)}
            </b>
          ),
        },
        { id: 'what', title: t('found'), cell: found },
        { id: 'when', title: t('col_when'), right: true, cell: (one) => <Ago us={one.time_us} /> },
        ...(onOpen
          ? [
              {
                id: 'history',
                title: '',
                right: true,
                cell: (one: NodeCheck) => (
                  <Button variant="subtle" size="compact-xs" onClick={() => onOpen(one)}>
                    {t('doctor_history')}
                  </Button>
                ),
              },
            ]
          : []),
      ]}
    />
  )
}

function found(one: NodeCheck): string {
  const params = one.params ?? {}
  if ('fault' in params) return sentence('doctor.fault', { check: one.check, ...params })
  // whether packages changed is a sentence each, as in the command line
  const which = one.check === 'packages' ? `packages_${params.changed}` : one.check
  return sentence(`doctor.${which}`, params)
}

function History({ of, onClose }: { of: NodeCheck; onClose: () => void }) {
  const { t } = useTranslation()
  const query = useQuery(doctorHistory(of.node, of.check))
  const title = `${t('doctor_history')}: ${of.check}, ${of.node}`
  return (
    <Modal opened onClose={onClose} title={title} size="xl">
      <Async query={query}>{(rows) => <Checks label={title} rows={rows} />}</Async>
    </Modal>
  )
}
