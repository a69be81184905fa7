import { TextInput } from '@mantine/core'
import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { FileText, Search } from 'lucide-react'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { seg, url } from '@/api/client'
import { tree as treeQuery, treeText } from '@/api/queries'
import type { ListingEntry } from '@/api/types'
import { size } from '@/lib/format'
import { Async, Empty, ErrorNote, Panel, Waiting } from '@/ui/Blocks'
import { Middle } from '@/ui/Small'
import { CodeText } from './CodeText'
import css from './code.module.css'

const PREVIEW = 512 * 1024
const SHOWN = 1000

interface Props {
  digest: string
  file: string
  onFile: (path: string) => void
}

export function TreeFiles({ digest, file, onFile }: Props) {
  const { t } = useTranslation()
  const query = useInfiniteQuery(treeQuery(digest))
  const [search, setSearch] = useState('')
  const entries = (query.data?.pages.flatMap((page) => page.entries ?? []) ?? []).filter(
    (entry) => entry.type !== 'dir',
  )
  const found = entries.filter((entry) => nameOf(entry).toLowerCase().includes(search.toLowerCase()))
  const chosen = entries.find((entry) => nameOf(entry) === file)
  if (query.isPending) return <Waiting />
  if (query.error) return <ErrorNote error={query.error} />
  return (
    <div className={css.split}>
      <Panel
        title={t('files_n', { count: query.data?.pages[0]?.files ?? entries.length })}
        actions={
          <TextInput
            w={130}
            value={search}
            onChange={(event) => setSearch(event.currentTarget.value)}
            placeholder={t('search')}
            aria-label={t('files_search')}
            leftSection={<Search size={14} aria-hidden />}
          />
        }
        flush
      >
        <div className={css.files}>
          {found.slice(0, SHOWN).map((entry) => (
            <button
              type="button"
              key={nameOf(entry)}
              className={css.file}
              aria-current={nameOf(entry) === file}
              onClick={() => onFile(nameOf(entry))}
            >
              <Middle text={nameOf(entry)} tail={20} />
              <span className="dim">{entry.type === 'link' ? '→' : size(entry.size_bytes ?? 0)}</span>
            </button>
          ))}
          {(found.length > SHOWN || query.hasNextPage) && (
            <button type="button" className={css.file} onClick={() => void query.fetchNextPage()}>
              {query.hasNextPage ? t('load_more') : t('shown_of', { shown: SHOWN, total: found.length })}
            </button>
          )}
        </div>
      </Panel>
      {chosen ? <Preview digest={digest} entry={chosen} /> : <Empty title={t('file_choose')} />}
    </div>
  )
}

function nameOf(entry: ListingEntry): string {
  return entry.path || `0x${entry.path_hex ?? ''}`
}

function Preview({ digest, entry }: { digest: string; entry: ListingEntry }) {
  const { t } = useTranslation()
  const big = (entry.size_bytes ?? 0) > PREVIEW
  const query = useQuery({
    ...treeText(digest, entry.path ?? ''),
    enabled: entry.type === 'file' && !big && Boolean(entry.path),
  })
  const download = url(`/trees/${seg(digest)}/content`, { path: entry.path })
  return (
    <Panel
      title={<span className="mono">{nameOf(entry)}</span>}
      actions={
        <a href={download} download style={{ fontSize: 13 }}>
          {t('download')}
        </a>
      }
      flush
    >
      {entry.type === 'link' ? (
        <p style={{ padding: '0 14px' }}>→ {entry.target}</p>
      ) : big ? (
        <Empty title={t('file_big', { size: size(entry.size_bytes ?? 0) })} />
      ) : (
        <Async query={query}>
          {(text) =>
            text.includes('\u0000') ? (
              <Empty title={t('file_binary')}>
                <FileText size={18} aria-hidden />
              </Empty>
            ) : (
              <CodeText text={text} label={nameOf(entry)} />
            )
          }
        </Async>
      )}
    </Panel>
  )
}
