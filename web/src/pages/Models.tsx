import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'
import { models } from '@/api/queries'
import { size } from '@/lib/format'
import { Async, Empty, Panel } from '@/ui/Blocks'
import { Page } from '@/ui/Page'
import { Tag } from '@/ui/Small'
import { Table } from '@/ui/Table'
import { Ago } from '@/ui/Time'

export function Models() {
  const { t } = useTranslation()
  const query = useQuery(models)
  return (
    <Page title={t('nav_models')} note={t('models_note')} ready={!query.isPending}>
      <Async query={query}>
        {(list) =>
          list.length === 0 ? (
            <Empty title={t('models_none')} command="trackbed models register NAME RUN">
              {t('models_none_how')}
            </Empty>
          ) : (
            <Panel flush>
              <Table
                label={t('nav_models')}
                rows={list.map((one) => ({
                  ...one,
                  newest: one.versions?.find((v) => v.version === one.latest) ?? one.versions?.at(-1),
                }))}
                rowKey={(one) => `${one.space}/${one.name}`}
                columns={[
                  {
                    id: 'name',
                    title: t('name'),
                    cell: (one) => (
                      <Link to="/models/$name" params={{ name: one.name }} style={{ fontWeight: 500 }}>
                        {one.name}
                      </Link>
                    ),
                  },
                  { id: 'latest', title: t('latest_version'), right: true, cell: (one) => one.latest },
                  {
                    id: 'aliases',
                    title: t('aliases'),
                    cell: (one) =>
                      Object.entries(one.aliases ?? {}).map(([alias, v]) => <Tag key={alias}>{`${alias} → ${v}`}</Tag>),
                  },
                  {
                    id: 'run',
                    title: t('made_by'),
                    cell: (one) =>
                      one.newest?.run_id ? (
                        <Link to="/runs/$run" params={{ run: one.newest.run_id }}>
                          {one.newest.run_ref || one.newest.run_id}
                        </Link>
                      ) : (
                        '–'
                      ),
                  },
                  {
                    id: 'size',
                    title: t('size'),
                    right: true,
                    cell: (one) => (one.newest ? size(one.newest.size_bytes ?? 0) : '–'),
                  },
                  {
                    id: 'created',
                    title: t('col_created'),
                    right: true,
                    cell: (one) => <Ago us={one.newest?.created_us} />,
                  },
                ]}
              />
            </Panel>
          )
        }
      </Async>
    </Page>
  )
}
