import { memo, useState } from 'react'
import { useTranslation } from 'react-i18next'
import type { LogLine } from '@/api/types'
import { locale } from '@/i18n'
import { clock, size } from '@/lib/format'
import { clean, highlight } from '@/lib/logs'
import css from './logs.module.css'

const LONG = 4000

interface Props {
  line: LogLine
  grep: string
  ranks: boolean
}

/** A very long line is folded and says by how much; opening it shows all of it. */
export const LogLineRow = memo(function LogLineRow({ line, grep, ranks }: Props) {
  const { t } = useTranslation()
  const [open, setOpen] = useState(false)
  const text = clean(line.text)
  const folded = text.length > LONG && !open
  return (
    <>
      <span className={css.time}>{clock(line.time_us, locale())}</span>
      <span className={css.who} title={line.stream}>
        {ranks && line.stream !== 'trackbed' ? line.rank : ''}
        {line.stream === 'trackbed' ? '·' : ''}
      </span>
      <span className={css.text}>
        {highlight(folded ? text.slice(0, LONG) : text, grep).map((part, i) =>
          // biome-ignore lint/suspicious/noArrayIndexKey: parts of a fixed text
          part.hit ? <mark key={i}>{part.text}</mark> : <span key={i}>{part.text}</span>,
        )}
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
