import { useRef } from 'react'
import { useTranslation } from 'react-i18next'
import type { FaultView } from '@/api/types'
import { sentence } from '@/i18n'
import css from './submit.module.css'

interface Props {
  text: string
  faults: FaultView[]
  onChange: (text: string) => void
}

/** The file itself, with its faults beside the lines that they stand on. */
export function SpecEditor({ text, faults, onChange }: Props) {
  const { t } = useTranslation()
  const gutter = useRef<HTMLDivElement>(null)
  const lines = Math.max(12, text.split('\n').length)
  const wrong = new Map<number, string>()
  for (const fault of faults)
    if (fault.line)
      wrong.set(fault.line, [wrong.get(fault.line), sentence(fault.code, fault.params)].filter(Boolean).join('\n'))
  return (
    <div className={css.editor}>
      <div className={css.gutter} ref={gutter} aria-hidden>
        {Array.from({ length: lines }, (_, i) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: numbers of lines
          <div key={i} data-wrong={wrong.has(i + 1) || undefined} title={wrong.get(i + 1)}>
            {i + 1}
          </div>
        ))}
      </div>
      <textarea
        className={css.text}
        aria-label={t('form_yaml')}
        value={text}
        rows={lines}
        spellCheck={false}
        wrap="off"
        onChange={(event) => onChange(event.currentTarget.value)}
        onScroll={(event) => {
          if (gutter.current) gutter.current.scrollTop = event.currentTarget.scrollTop
        }}
      />
    </div>
  )
}
