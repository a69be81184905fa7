import { useQuery } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'
import { doc as docQuery, docs as docsQuery } from '@/api/queries'
import type { DocumentView, RunDetail } from '@/api/types'
import { size } from '@/lib/format'
import type { RunSearch } from '@/lib/search'
import { Async, Empty, Panel } from '@/ui/Blocks'
import { Copyable } from '@/ui/Copy'
import { Middle } from '@/ui/Small'
import css from './docs.module.css'
import { Markdown } from './Markdown'

interface Props {
  detail: RunDetail
  search: RunSearch
  go: (change: Partial<RunSearch>) => void
  /** A file that is no document. */
  onFile: (path: string) => void
}

/** The documents as they were when the run was submitted. */
export function Docs({ detail, search, go, onFile }: Props) {
  const { t } = useTranslation()
  const id = detail.run.id
  const list = useQuery({ ...docsQuery(id), enabled: Boolean(detail.tree) })
  const file = search.file || list.data?.[0]?.path || ''
  const shown = useQuery({ ...docQuery(id, file), enabled: Boolean(file) })
  const open = (path: string) => (list.data?.some((one) => one.path === path) ? go({ file: path }) : onFile(path))
  if (!detail.tree || list.data?.length === 0) return <Empty title={t('docs_none')}>{t('docs_none_how')}</Empty>
  return (
    <Async query={list}>
      {(documents) => (
        <div className={css.split}>
          <Panel title={t('docs_n', { count: documents.length })} flush>
            {documents.map((one) => (
              <button
                key={one.path}
                type="button"
                className={css.file}
                aria-current={one.path === file}
                onClick={() => go({ file: one.path })}
              >
                <Middle text={one.path} tail={20} />
              </button>
            ))}
          </Panel>
          <Async query={shown}>{(one) => <Shown shown={one} onFile={open} />}</Async>
        </div>
      )}
    </Async>
  )
}

function Shown({ shown, onFile }: { shown: DocumentView; onFile: (path: string) => void }) {
  const { t } = useTranslation()
  const text = shown.text ?? ''
  const commands = shown.commands ?? []
  return (
    <div style={{ display: 'grid', gap: 16, minWidth: 0 }}>
      <Panel title={<span className="mono">{shown.path}</span>}>
        {/\.(md|markdown)$/i.test(shown.path) ? (
          <Markdown text={text} path={shown.path} onFile={onFile} />
        ) : (
          <pre style={{ whiteSpace: 'pre-wrap', margin: 0 }}>{text}</pre>
        )}
        {shown.cut_bytes ? <p className="dim">{t('docs_cut', { size: size(shown.cut_bytes) })}</p> : null}
      </Panel>
      {commands.length > 0 && (
        <Panel title={t('docs_commands', { count: commands.length })}>
          {commands.map((one) => (
            <div key={one.line} className="mono" style={{ whiteSpace: 'pre-wrap', fontSize: 12.5 }}>
              <span className="dim">{t('line_n', { n: one.line })}</span>{' '}
              <Copyable text={one.text}>{one.text}</Copyable>
            </div>
          ))}
        </Panel>
      )}
    </div>
  )
}
