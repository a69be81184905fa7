import { Button } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useParams } from '@tanstack/react-router'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { dataset } from '@/api/queries'
import { TreeFiles } from '@/features/code/TreeFiles'
import { command } from '@/lib/command'
import { size } from '@/lib/format'
import { Async, Panel } from '@/ui/Blocks'
import { CopyButton } from '@/ui/Copy'
import { useSayLeaf } from '@/ui/leaf'
import { Page } from '@/ui/Page'
import { Digest } from '@/ui/Small'
import { Table } from '@/ui/Table'
import { Ago } from '@/ui/Time'

export function Dataset() {
  const { t } = useTranslation()
  const { name = '' } = useParams({ strict: false })
  const query = useQuery(dataset(name))
  const [open, setOpen] = useState('')
  const [file, setFile] = useState('')
  useSayLeaf(name)
  return (
    <Page title={name} note={t('dataset_note')} ready={!query.isPending}>
      <Async query={query}>
        {(data) => (
          <Panel title={t('versions_n', { count: data.versions?.length ?? 0 })} flush>
            <Table
              label={t('versions')}
              rows={[...(data.versions ?? [])].sort((a, b) => b.version - a.version)}
              rowKey={(one) => String(one.version)}
              columns={[
                { id: 'version', title: t('version'), cell: (one) => <b>{`${data.name}@${one.version}`}</b> },
                { id: 'message', title: t('message'), cell: (one) => one.message || <span className="dim">–</span> },
                { id: 'files', title: t('files'), right: true, cell: (one) => one.files ?? 0 },
                { id: 'size', title: t('size'), right: true, cell: (one) => size(one.size_bytes ?? 0) },
                { id: 'digest', title: t('digest'), cell: (one) => <Digest value={one.digest} /> },
                { id: 'by', title: t('by'), cell: (one) => one.created_by || '–' },
                { id: 'created', title: t('col_created'), right: true, cell: (one) => <Ago us={one.created_us} /> },
                {
                  id: 'do',
                  title: '',
                  right: true,
                  cell: (one) => (
                    <span style={{ display: 'inline-flex', gap: 4 }}>
                      <Button
                        variant="subtle"
                        size="compact-xs"
                        aria-expanded={open === one.digest}
                        onClick={() => setOpen(open === one.digest ? '' : one.digest)}
                      >
                        {t('files')}
                      </Button>
                      <CopyButton
                        terminal
                        text={command('data', 'pull', `${data.name}@${one.version}`)}
                        label={t('copy_command')}
                      />
                    </span>
                  ),
                },
              ]}
            />
          </Panel>
        )}
      </Async>
      {open && <TreeFiles digest={open} file={file} onFile={setFile} />}
    </Page>
  )
}
