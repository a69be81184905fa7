import { useQuery } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'
import { environments as environmentsQuery } from '@/api/queries'
import { word } from '@/i18n'
import { number } from '@/lib/format'
import { Async, Empty, Panel } from '@/ui/Blocks'
import { Digest, Tag } from '@/ui/Small'
import { Table } from '@/ui/Table'
import { Ago } from '@/ui/Time'

/** The environments that runs used or that have a name, with how far they are packed. */
export function Environments() {
  const { t } = useTranslation()
  const query = useQuery(environmentsQuery)
  return (
    <Panel title={t('envs')} flush>
      <Async query={query}>
        {(list) =>
          list.length === 0 ? (
            <Empty title={t('envs_none')} />
          ) : (
            <Table
              label={t('envs')}
              rows={list}
              rowKey={(env) => env.digest}
              columns={[
                { id: 'digest', title: t('digest'), cell: (env) => <Digest value={env.digest} /> },
                {
                  id: 'names',
                  title: t('env_names'),
                  cell: (env) => (env.names ?? []).map((name) => <Tag key={name}>{name}</Tag>),
                },
                { id: 'kind', title: t('kind'), cell: (env) => env.kind ?? 'current' },
                { id: 'python', title: 'Python', cell: (env) => env.python },
                { id: 'platform', title: t('platform'), cell: (env) => env.platform },
                { id: 'packages', title: t('col_packages'), right: true, cell: (env) => number(env.packages ?? 0) },
                {
                  id: 'packs',
                  title: t('col_packs'),
                  cell: (env) =>
                    (env.packs ?? []).map((pack) => (
                      <div key={pack.platform}>
                        {pack.platform}: {word('pack', pack.state)}
                      </div>
                    )),
                },
                { id: 'runs', title: t('nav_runs'), right: true, cell: (env) => number(env.runs ?? 0) },
                { id: 'created', title: t('col_created'), right: true, cell: (env) => <Ago us={env.created_us} /> },
              ]}
            />
          )
        }
      </Async>
    </Panel>
  )
}
