import { useQuery } from '@tanstack/react-query'
import { Link, useParams } from '@tanstack/react-router'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { model } from '@/api/queries'
import { Provenance } from '@/features/registry/Provenance'
import { command } from '@/lib/command'
import { size } from '@/lib/format'
import { Async, Panel } from '@/ui/Blocks'
import { CopyButton } from '@/ui/Copy'
import { useSayLeaf } from '@/ui/leaf'
import { Page } from '@/ui/Page'
import { Digest, Tag } from '@/ui/Small'
import { Table } from '@/ui/Table'
import { Ago } from '@/ui/Time'

export function Model() {
  const { t } = useTranslation()
  const { name = '' } = useParams({ strict: false })
  const query = useQuery(model(name))
  const [picked, setPicked] = useState(0)
  useSayLeaf(name)
  return (
    <Page title={name} note={t('model_note')} ready={!query.isPending}>
      <Async query={query}>
        {(data) => {
          const rows = [...(data.versions ?? [])].sort((a, b) => b.version - a.version)
          const shown = rows.find((one) => one.version === picked) ?? rows[0]
          return (
            <>
              <Panel title={t('versions_n', { count: rows.length })} flush>
                <Table
                  label={t('versions')}
                  rows={rows}
                  rowKey={(one) => String(one.version)}
                  columns={[
                    {
                      id: 'version',
                      title: t('version'),
                      cell: (one) => (
                        <button
                          type="button"
                          onClick={() => setPicked(one.version)}
                          style={{ all: 'unset', cursor: 'pointer', fontWeight: 600, color: 'var(--link)' }}
                        >
                          {`${data.name}@${one.version}`}
                        </button>
                      ),
                    },
                    {
                      id: 'aliases',
                      title: t('aliases'),
                      cell: (one) => (one.aliases ?? []).map((alias) => <Tag key={alias}>{alias}</Tag>),
                    },
                    {
                      id: 'run',
                      title: t('made_by'),
                      cell: (one) =>
                        one.run_id ? (
                          <Link to="/runs/$run" params={{ run: one.run_id }}>
                            {one.run_ref || one.run_id}
                          </Link>
                        ) : (
                          '–'
                        ),
                    },
                    { id: 'size', title: t('size'), right: true, cell: (one) => size(one.size_bytes ?? 0) },
                    { id: 'digest', title: t('digest'), cell: (one) => <Digest value={one.digest} /> },
                    { id: 'by', title: t('by'), cell: (one) => one.created_by || '–' },
                    { id: 'created', title: t('col_created'), right: true, cell: (one) => <Ago us={one.created_us} /> },
                    {
                      id: 'do',
                      title: '',
                      cell: (one) => (
                        <CopyButton
                          terminal
                          text={command('models', 'pull', `${data.name}@${one.version}`)}
                          label={t('copy_command')}
                        />
                      ),
                    },
                  ]}
                />
              </Panel>
              {shown && <Provenance version={shown} />}
            </>
          )
        }}
      </Async>
    </Page>
  )
}
