import { memo, useState } from 'react'
import { useTranslation } from 'react-i18next'
import type { LogLine } from '@/api/types'
import { locale } from '@/i18n'
import { clock, size } from '@/lib/format'
import { coloured, highlight, paint } from '@/lib/logs'
import css from './logs.module.css'

const LONG = 4000

interface Props {
  line: LogLine
  grep: string
  ranks: boolean
  /** Address of this line. */
  href: string
  onPick: (id: string) => void
}

/** A very long line is folded and says by how much; opening it shows all of it. Its time is a link to it. */
export const LogLineRow = memo(function LogLineRow({ line, grep, ranks, href, onPick }: Props) {
  const { t } = useTranslation()
  const [open, setOpen] = useState(false)
  const text = coloured(line)
  const folded = text.length > LONG && !open
  return (
    <>
      <a
        className={css.time}
        href={href}
        title={t('log_line_link')}
        tabIndex={-1}
        onClick={(event) => {
          if (event.ctrlKey || event.metaKey || event.shiftKey) return
          event.preventDefault()
          onPick(line.id)
        }}
      >
        {clock(line.time_us, locale())}
      </a>
      <span className={css.who} title={line.stream}>
        {ranks && line.stream !== 'trackbed' ? line.rank : ''}
        {line.stream === 'trackbed' ? '·' : ''}
      </span>
      <span className={css.text}>
        {paint(folded ? text.slice(0, LONG) : text).map((part, i) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: parts of a fixed text
          <span key={i} data-ansi={part.colour ?? undefined} data-bold={part.bold || undefined}>
            {highlight(part.text, grep).map((piece, j) =>
              // biome-ignore lint/suspicious/noArrayIndexKey: parts of a fixed text
              piece.hit ? <mark key={j}>{piece.text}</mark> : piece.text,
            )}
          </span>
        ))}
        {folded && (
          <button type="button" className={css.more} onClick={() => setOpen(true)}>
            {' '}
            {t('show_rest_size', { size: size(text.length - LONG) })}
          </button>
        )}
      </span>
    </>
  )
})
