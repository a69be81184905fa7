import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'
import { conflicts as conflictsQuery, protections as protectionsQuery } from '@/api/queries'
import { Async, Empty, Panel } from '@/ui/Blocks'
import { Table } from '@/ui/Table'
import { Ago } from '@/ui/Time'

/** What nobody changes alone. */
export function Protections() {
  const { t } = useTranslation()
  const query = useQuery(protectionsQuery)
  return (
    <Panel title={t('protections')} flush>
      <Async query={query}>
        {(rules) =>
          rules.length === 0 ? (
            <Empty title={t('protections_none')} command="trackbed review protect 'configs/*.yaml'" />
          ) : (
            <Table
              label={t('protections')}
              rows={rules}
              rowKey={(rule) => `${rule.space} ${rule.kind} ${rule.pattern}`}
              columns={[
                { id: 'kind', title: t('kind'), cell: (rule) => t(`subject_${rule.kind}`) },
                {
                  id: 'pattern',
                  title: t('protection_pattern'),
                  cell: (rule) => <span className="mono">{rule.pattern}</span>,
                },
                { id: 'approvals', title: t('review_needed'), right: true, cell: (rule) => rule.approvals ?? 1 },
                {
                  id: 'who',
                  title: t('protection_who'),
                  cell: (rule) => (rule.approvers ?? []).join(', ') || t('anybody'),
                },
                { id: 'space', title: t('space'), cell: (rule) => rule.space ?? 'default' },
              ]}
            />
          )
        }
      </Async>
    </Panel>
  )
}

/** What two pieces of open work touch both. */
export function Conflicts() {
  const { t } = useTranslation()
  const query = useQuery(conflictsQuery)
  return (
    <Panel title={t('conflicts')} flush>
      <Async query={query}>
        {(list) =>
          list.length === 0 ? (
            <Empty title={t('conflicts_none')} />
          ) : (
            <Table
              label={t('conflicts')}
              rows={list}
              rowKey={(one) => `${one.kind} ${one.subject}`}
              columns={[
                { id: 'kind', title: t('kind'), cell: (one) => t(`subject_${one.kind}`) },
                {
                  id: 'subject',
                  title: t('name'),
                  cell: (one) => (
                    <>
                      <span className="mono">{one.subject}</span>{' '}
                      {one.lines && <b style={{ color: 'var(--tone-red)', fontWeight: 500 }}>{t('conflict_lines')}</b>}
                    </>
                  ),
                },
                {
                  id: 'who',
                  title: t('conflict_who'),
                  cell: (one) =>
                    one.works.map((work) => (
                      <div key={`${work.owner} ${work.branch} ${work.run} ${work.review}`}>
                        {work.owner} <span className="mono">{work.branch}</span>{' '}
                        {work.run && (
                          <Link to="/runs/$run" params={{ run: work.run }}>
                            {t('run_word')}
                          </Link>
                        )}{' '}
                        <span className="dim">
                          {work.review} <Ago us={work.time_us} />
                        </span>
                      </div>
                    )),
                },
              ]}
            />
          )
        }
      </Async>
    </Panel>
  )
}
