import { Button } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { useVirtualizer } from '@tanstack/react-virtual'
import { ArrowDown } from 'lucide-react'
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from 'react'
import { useTranslation } from 'react-i18next'
import type { RunDetail } from '@/api/types'
import { putInFront } from '@/lib/logs'
import type { RunSearch } from '@/lib/search'
import { isLive } from '@/lib/states'
import { Empty, ErrorNote, errorText, Waiting } from '@/ui/Blocks'
import { toClipboard } from '@/ui/Copy'
import { LogLineRow } from './LogLineRow'
import { LogTools } from './LogTools'
import css from './logs.module.css'
import { allText, useLogs } from './useLogs'

interface Props {
  detail: RunDetail
  search: RunSearch
  go: (change: Partial<RunSearch>) => void
}

export function LogsPanel({ detail, search, go }: Props) {
  const { t } = useTranslation()
  const { run, spec } = detail
  const filter = useMemo(
    () => ({
      level: search.level ?? '',
      rank: search.rank ?? '',
      grep: search.grep ?? '',
      attempt: search.attempt ?? '',
    }),
    [search.level, search.rank, search.grep, search.attempt],
  )
  const logs = useLogs(run.id, filter, isLive(run.state), search.line)
  const [wrap, setWrap] = useState(false)
  const found = search.line ?? ''
  const ranks = spec.launcher === 'none' ? 1 : Math.max(1, run.cards ?? 1)

  const jump = async () => {
    const id = await logs.firstError().catch(() => '')
    if (id) go({ line: id })
    else notifications.show({ message: t('no_errors'), color: 'green' })
  }
  const pick = useCallback(
    (id: string) => {
      go({ line: id })
      void toClipboard(addressOf(id)).then(() => notifications.show({ message: t('link_copied') }))
    },
    [go, t],
  )
  const download = async () => {
    try {
      save(await allText(run.id, filter.attempt), `${run.ref.replace('#', '-')}.log`)
    } catch (error) {
      notifications.show({ color: 'red', message: errorText(error) })
    }
  }
  return (
    <div className={css.wrap}>
      <LogTools
        filter={filter}
        go={go}
        ranks={ranks}
        attempts={detail.attempts?.length ?? 1}
        wrap={wrap}
        onWrap={setWrap}
        onError={() => void jump()}
        onDownload={() => void download()}
      />
      {Boolean(logs.error) && (
        <div style={{ padding: 12 }}>
          <ErrorNote error={logs.error} />
        </div>
      )}
      {!logs.complete && logs.lines.length > 0 && (
        <div className={css.note}>
          {t('logs_earlier', { count: logs.lines.length })}
          <Button variant="subtle" size="compact-xs" loading={logs.loading} onClick={logs.earlier}>
            {t('logs_load_earlier')}
          </Button>
          <Button variant="subtle" size="compact-xs" onClick={logs.toStart}>
            {t('logs_to_start')}
          </Button>
          {found && (
            <Button
              variant="subtle"
              size="compact-xs"
              onClick={() => {
                go({ line: '' })
                logs.toEnd()
              }}
            >
              {t('logs_to_end')}
            </Button>
          )}
        </div>
      )}
      {logs.lines.length === 0 ? (
        logs.loading ? (
          <Waiting />
        ) : (
          <Nothing filtered={Boolean(filter.grep || filter.level || filter.rank)} />
        )
      ) : (
        <Lines
          key={logs.part}
          follow={logs.part === 'end'}
          lines={logs.lines}
          grep={filter.grep}
          ranks={ranks > 1}
          wrap={wrap}
          found={found}
          onEnd={logs.later}
          onPick={pick}
        />
      )}
    </div>
  )
}

function Nothing({ filtered }: { filtered: boolean }) {
  const { t } = useTranslation()
  return <Empty title={t(filtered ? 'logs_none_match' : 'logs_none')}>{filtered ? '' : t('logs_none_how')}</Empty>
}

interface LinesProps {
  lines: ReturnType<typeof useLogs>['lines']
  grep: string
  ranks: boolean
  wrap: boolean
  found: string
  onEnd: () => void
  onPick: (id: string) => void
  /** Opens at its end and stays there as lines come. */
  follow: boolean
}

/** Follows only while the end is in sight: who reads further up stays there and sees how many lines came. */
function Lines({ lines, grep, ranks, wrap, found, onEnd, onPick, follow }: LinesProps) {
  const { t } = useTranslation()
  const box = useRef<HTMLDivElement>(null)
  const atEnd = useRef(follow)
  const [seen, setSeen] = useState(lines.length)
  const rows = useVirtualizer({
    count: lines.length,
    getScrollElement: () => box.current,
    estimateSize: () => 20,
    overscan: 30,
    getItemKey: (index) => lines[index]!.id,
  })
  const count = lines.length
  const first = lines[0]?.id
  const shown = useRef(lines)
  useLayoutEffect(() => {
    const at = putInFront(shown.current, lines)
    shown.current = lines
    if (at === 0) return
    atEnd.current = false // what was on top stays in sight
    rows.scrollToIndex(at, { align: 'start' })
  }, [lines, rows])
  useLayoutEffect(() => {
    if (!atEnd.current || count === 0) return
    rows.scrollToIndex(count - 1, { align: 'end' })
    setSeen(count)
  }, [count, rows])
  // biome-ignore lint/correctness/useExhaustiveDependencies: another first line is another window: nothing in it is new
  useEffect(() => setSeen(count), [first])
  const went = useRef('')
  useEffect(() => {
    const at = found && found !== went.current ? lines.findIndex((line) => line.id === found) : -1
    if (at < 0) return
    went.current = found
    atEnd.current = false
    rows.scrollToIndex(at, { align: 'center' })
  }, [found, lines, rows])
  const scrolled = () => {
    const { scrollTop, scrollHeight, clientHeight } = box.current!
    atEnd.current = scrollHeight - scrollTop - clientHeight < 30
    if (!atEnd.current) return
    if (seen !== count) setSeen(count)
    onEnd()
  }
  const toEnd = () => {
    atEnd.current = true
    rows.scrollToIndex(count - 1, { align: 'end' })
    setSeen(count)
  }
  return (
    <div style={{ position: 'relative', flex: 1, minHeight: 0, display: 'flex' }}>
      <div
        className={`${css.lines} ${wrap ? css.wrapOn : ''}`}
        ref={box}
        onScroll={scrolled}
        tabIndex={0}
        role="log"
        aria-live="off"
        aria-label={t('tab_logs')}
      >
        <div
          style={{
            height: rows.getTotalSize(),
            position: 'relative',
            width: wrap ? '100%' : undefined,
            minWidth: '100%',
          }}
        >
          {rows.getVirtualItems().map(({ index, start, key }) => {
            const line = lines[index]!
            return (
              <div
                key={key}
                ref={wrap ? rows.measureElement : undefined}
                data-index={index}
                data-level={line.level}
                data-found={line.id === found}
                className={css.line}
                style={{ transform: `translateY(${start}px)`, ...(wrap ? { width: '100%' } : {}) }}
              >
                <LogLineRow line={line} grep={grep} ranks={ranks} href={addressOf(line.id)} onPick={onPick} />
              </div>
            )
          })}
        </div>
      </div>
      {count > seen && (
        <Button className={css.new} radius="xl" leftSection={<ArrowDown size={14} aria-hidden />} onClick={toEnd}>
          {t('new_lines', { count: count - seen })}
        </Button>
      )}
    </div>
  )
}

/** The address of this page with one line of it. */
function addressOf(line: string): string {
  const at = new URL(window.location.href)
  at.searchParams.set('line', line)
  return at.href
}

function save(parts: string[], name: string): void {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(new Blob(parts, { type: 'text/plain' }))
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000)
}
