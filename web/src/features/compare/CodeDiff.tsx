import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { ChevronDown, ChevronRight } from 'lucide-react'
import { type ReactNode, useEffect, useMemo, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { tree as treeQuery, treeText } from '@/api/queries'
import type { ListingEntry } from '@/api/types'
import type { Key } from '@/i18n'
import { linePatch } from '@/lib/linediff'
import { Empty, ErrorNote, Panel, Waiting } from '@/ui/Blocks'
import { Tag } from '@/ui/Small'
import css from './compare.module.css'

const TEXT = 512 * 1024
const SHOWN = 300

interface Changed {
  path: string
  how: 'added' | 'removed' | 'changed'
  bytes: number
}

interface Props {
  a: string
  b: string
  /** Draws a patch; it belongs to another room. */
  patch: (text: string, label: string) => ReactNode
}

/** Files that differ between two captured trees, each with its changed lines. */
export function CodeDiff({ a, b, patch }: Props) {
  const { t } = useTranslation()
  const before = useFiles(a)
  const after = useFiles(b)
  const changed = useMemo(
    () => (before.files && after.files ? changes(before.files, after.files) : []),
    [before.files, after.files],
  )
  if (before.error || after.error) return <ErrorNote error={before.error ?? after.error} />
  if (!before.files || !after.files) return <Waiting />
  if (changed.length === 0) return <Empty title={t('code_same')} />
  return (
    <Panel title={t('files_changed', { count: changed.length })} flush>
      <div className={css.files}>
        {changed.slice(0, SHOWN).map((one, i) => (
          <File key={one.path} a={a} b={b} file={one} patch={patch} opened={i === 0} />
        ))}
      </div>
      {changed.length > SHOWN && (
        <p className="dim" style={{ padding: '8px 14px', margin: 0 }}>
          {t('shown_of', { shown: SHOWN, total: changed.length })}
        </p>
      )}
    </Panel>
  )
}

function useFiles(digest: string): { files: Map<string, ListingEntry> | null; error: unknown } {
  const query = useInfiniteQuery(treeQuery(digest))
  const { hasNextPage, isFetchingNextPage, fetchNextPage, data, error } = query
  useEffect(() => {
    if (hasNextPage && !isFetchingNextPage) void fetchNextPage()
  }, [hasNextPage, isFetchingNextPage, fetchNextPage])
  const files = useMemo(() => {
    if (!data || hasNextPage) return null
    const entries = data.pages.flatMap((page) => page.entries ?? []).filter((entry) => entry.type !== 'dir')
    return new Map(entries.map((entry) => [entry.path || `0x${entry.path_hex ?? ''}`, entry]))
  }, [data, hasNextPage])
  return { files, error }
}

function changes(before: Map<string, ListingEntry>, after: Map<string, ListingEntry>): Changed[] {
  const paths = [...new Set([...before.keys(), ...after.keys()])].sort()
  return paths.flatMap((path): Changed[] => {
    const [one, two] = [before.get(path), after.get(path)]
    const bytes = Math.max(one?.size_bytes ?? 0, two?.size_bytes ?? 0)
    if (!one) return [{ path, how: 'added', bytes }]
    if (!two) return [{ path, how: 'removed', bytes }]
    const same =
      one.file_digest === two.file_digest &&
      one.target === two.target &&
      Boolean(one.executable) === Boolean(two.executable)
    return same ? [] : [{ path, how: 'changed', bytes }]
  })
}

const HOW: Record<Changed['how'], Key> = { added: 'added', removed: 'removed', changed: 'changed' }

interface FileProps extends Props {
  file: Changed
  opened: boolean
}

function File({ a, b, file, patch, opened }: FileProps) {
  const { t } = useTranslation()
  const [open, setOpen] = useState(opened)
  const Icon = open ? ChevronDown : ChevronRight
  return (
    <div>
      <button type="button" className={css.fileHead} aria-expanded={open} onClick={() => setOpen((was) => !was)}>
        <Icon size={14} aria-hidden />
        <span className="mono cut">{file.path}</span>
        <Tag>{t(HOW[file.how])}</Tag>
      </button>
      {open && <Lines a={a} b={b} file={file} patch={patch} />}
    </div>
  )
}

function Lines({ a, b, file, patch }: Props & { file: Changed }) {
  const { t } = useTranslation()
  const big = file.bytes > TEXT
  const before = useQuery({ ...treeText(a, file.path), enabled: !big && file.how !== 'added' })
  const after = useQuery({ ...treeText(b, file.path), enabled: !big && file.how !== 'removed' })
  if (big) return <Empty title={t('diff_big')} />
  if (before.error || after.error) return <ErrorNote error={before.error ?? after.error} />
  const [one, two] = [file.how === 'added' ? '' : before.data, file.how === 'removed' ? '' : after.data]
  if (one === undefined || two === undefined) return <Waiting />
  if (`${one}${two}`.includes('\u0000')) return <Empty title={t('file_binary')} />
  const text = linePatch(one, two, file.path)
  return text ? patch(text, file.path) : <Empty title={t('diff_mode')} />
}
