import { TextInput } from '@mantine/core'
import { Search } from 'lucide-react'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import type { RunDetail } from '@/api/types'
import { Empty, Facts, Panel } from '@/ui/Blocks'
import { Digest } from '@/ui/Small'
import { Table } from '@/ui/Table'
import { Packs } from './Packs'
import css from './run.module.css'

export function Environment({ detail }: { detail: RunDetail }) {
  const { t } = useTranslation()
  const [search, setSearch] = useState('')
  const env = detail.environment
  if (!env) return <Empty title={t('environment_none')}>{t('environment_none_how')}</Empty>
  const found = (env.packages ?? []).filter(([name]) => name.toLowerCase().includes(search.toLowerCase()))
  const vars = Object.entries(detail.spec.env ?? {})
  return (
    <div className={css.columns}>
      <Panel
        title={t('packages_n', { count: env.packages?.length ?? 0 })}
        actions={
          <TextInput
            value={search}
            onChange={(event) => setSearch(event.currentTarget.value)}
            placeholder={t('search')}
            aria-label={t('packages_search')}
            leftSection={<Search size={14} aria-hidden />}
          />
        }
        flush
      >
        <Table
          label={t('packages')}
          rows={found}
          rowKey={([name]) => name}
          columns={[
            { id: 'name', title: t('name'), cell: ([name]) => name },
            { id: 'version', title: t('version'), cell: ([, version]) => <span className="mono">{version}</span> },
            { id: 'digest', title: t('digest'), cell: ([, , digest]) => <Digest value={digest} /> },
          ]}
        />
      </Panel>
      <div className={css.stack}>
        <Panel title={t('environment')}>
          <Facts
            rows={[
              [t('digest'), <Digest key="d" value={env.digest} />],
              [t('kind'), env.kind ?? 'current'],
              ['Python', env.python],
              [t('platform'), env.platform],
              [
                t('interpreter'),
                env.executable && (
                  <span key="x" className="mono">
                    {env.executable}
                  </span>
                ),
              ],
            ]}
          />
        </Panel>
        {env.digest && <Packs digest={env.digest} />}
        {vars.length > 0 && (
          <Panel title={t('variables')}>
            <Facts
              rows={vars.map(([name, value]) => [
                <span key={name} className="mono">
                  {name}
                </span>,
                value,
              ])}
            />
          </Panel>
        )}
      </div>
    </div>
  )
}
