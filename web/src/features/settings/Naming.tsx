import { useQuery } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'
import { projects as projectsQuery } from '@/api/queries'
import { Panel } from '@/ui/Blocks'
import { CopyButton } from '@/ui/Copy'
import { Tag } from '@/ui/Small'
import { Table } from '@/ui/Table'

/** What the projects call their runs. The rule is changed where its writer can try it: on the command line. */
export function Naming() {
  const { t } = useTranslation()
  const { data = [] } = useQuery(projectsQuery)
  const ruled = data.filter((project) => project.naming?.name || project.naming?.tags?.length)
  return (
    <Panel title={t('naming')} flush={ruled.length > 0}>
      {ruled.length === 0 ? (
        <span className="dim">{t('naming_none')}</span>
      ) : (
        <Table
          label={t('naming')}
          rows={ruled}
          rowKey={(project) => `${project.space}/${project.name}`}
          columns={[
            { id: 'project', title: t('project'), cell: (project) => project.name },
            {
              id: 'name',
              title: t('name'),
              cell: ({ naming }) =>
                naming?.name && (
                  <span className="mono">
                    {naming.name} <CopyButton text={naming.name} label={t('copy_what', { what: naming.name })} />
                  </span>
                ),
            },
            { id: 'example', title: t('naming_example'), cell: ({ naming }) => naming?.example },
            {
              id: 'tags',
              title: t('naming_tags'),
              cell: ({ naming }) => (naming?.tags ?? []).map((tag) => <Tag key={tag}>{tag}</Tag>),
            },
          ]}
        />
      )}
    </Panel>
  )
}
