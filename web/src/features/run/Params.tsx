import { TextInput } from '@mantine/core'
import { Search } from 'lucide-react'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import type { RunDetail } from '@/api/types'
import { plain } from '@/lib/format'
import { Empty, Panel } from '@/ui/Blocks'
import { CopyButton } from '@/ui/Copy'
import { Table } from '@/ui/Table'

const SHOWN = 500
const LONG = 2000

/** Params as resolved; long values are folded, never cut without a word. */
export function Params({ detail }: { detail: RunDetail }) {
  const { t } = useTranslation()
  const [search, setSearch] = useState('')
  const all = Object.entries({ ...detail.run.params, ...detail.spec.params })
  if (all.length === 0) return <Empty title={t('params_none')}>{t('params_none_how')}</Empty>
  const needle = search.toLowerCase()
  const found = all.filter(([name, value]) => `${name} ${plain(value)}`.toLowerCase().includes(needle))
  return (
    <Panel
      title={t('params_n', { count: all.length })}
      actions={
        <TextInput
          value={search}
          onChange={(event) => setSearch(event.currentTarget.value)}
          placeholder={t('search')}
          aria-label={t('params_search')}
          leftSection={<Search size={14} aria-hidden />}
        />
      }
      flush
    >
      <Table
        label={t('tab_params')}
        rows={found.slice(0, SHOWN)}
        rowKey={([name]) => name}
        columns={[
          { id: 'name', title: t('name'), cell: ([name]) => <span className="mono">{name}</span> },
          { id: 'value', title: t('value'), cell: ([, value]) => <Value text={plain(value)} /> },
        ]}
      />
      {found.length > SHOWN && (
        <p className="dim" style={{ padding: '0 14px' }}>
          {t('shown_of', { shown: SHOWN, total: found.length })}
        </p>
      )}
    </Panel>
  )
}

function Value({ text }: { text: string }) {
  const { t } = useTranslation()
  const [open, setOpen] = useState(false)
  const long = text.length > LONG && !open
  return (
    <span className="mono" style={{ overflowWrap: 'anywhere', whiteSpace: 'pre-wrap' }}>
      {long ? text.slice(0, LONG) : text}
      {long && (
        <button
          type="button"
          onClick={() => setOpen(true)}
          style={{ all: 'unset', cursor: 'pointer', color: 'var(--link)' }}
        >
          {' '}
          {t('show_rest', { count: text.length - LONG })}
        </button>
      )}{' '}
      <CopyButton text={text} label={t('copy_value')} />
    </span>
  )
}
