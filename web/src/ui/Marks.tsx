import { Tooltip } from '@mantine/core'
import { TriangleAlert } from 'lucide-react'
import { useTranslation } from 'react-i18next'
import { word } from '@/i18n'
import css from './ui.module.css'

/** What is not as it should be with a run right now: an icon, and the words on hover and for screen readers. */
export function Marks({ kinds, words = false }: { kinds: string[] | undefined; words?: boolean }) {
  const { t } = useTranslation()
  if (!kinds?.length) return null
  const text = [...new Set(kinds)].map((kind) => word('anomaly', kind)).join(', ')
  return (
    <Tooltip label={t('marks_open', { what: text })} disabled={words}>
      <span className={css.marks} data-marks={kinds.join(' ')}>
        <TriangleAlert size={14} aria-hidden />
        {words ? text : <span className="sr-only">{text}</span>}
      </span>
    </Tooltip>
  )
}
