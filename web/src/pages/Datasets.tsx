import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'
import { datasets } from '@/api/queries'
import { size } from '@/lib/format'
import { Async, Empty, Panel } from '@/ui/Blocks'
import { Page } from '@/ui/Page'
import { Digest } from '@/ui/Small'
import { Table } from '@/ui/Table'
import { Ago } from '@/ui/Time'

export function Datasets() {
  const { t } = useTranslation()
  const query = useQuery(datasets)
  return (
    <Page title={t('nav_datasets')} note={t('datasets_note')} ready={!query.isPending}>
      <Async query={query}>
        {(list) =>
          list.length === 0 ? (
            <Empty title={t('datasets_none')} command="trackbed data add NAME PATH">
              {t('datasets_none_how')}
            </Empty>
          ) : (
            <Panel flush>
              <Table
                label={t('nav_datasets')}
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
                      <Link to="/datasets/$name" params={{ name: one.name }} style={{ fontWeight: 500 }}>
                        {one.name}
                      </Link>
                    ),
                  },
                  { id: 'latest', title: t('latest_version'), right: true, cell: (one) => one.latest },
                  { id: 'files', title: t('files'), right: true, cell: (one) => one.newest?.files ?? '–' },
                  {
                    id: 'size',
                    title: t('size'),
                    right: true,
                    cell: (one) => (one.newest ? size(one.newest.size_bytes ?? 0) : '–'),
                  },
                  { id: 'digest', title: t('digest'), cell: (one) => <Digest value={one.newest?.digest} /> },
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
