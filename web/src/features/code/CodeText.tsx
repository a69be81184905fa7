import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { patchLines } from '@/lib/patch'
import css from './code.module.css'

const LINES = 3000

/** Text with numbers, or a patch in colours (and signs). Long ones open whole on request. */
export function CodeText({ text, patch = false, label }: { text: string; patch?: boolean; label: string }) {
  const { t } = useTranslation()
  const [all, setAll] = useState(false)
  const lines = patch
    ? patchLines(text)
    : text
        .replace(/\n$/, '')
        .split('\n')
        .map((line) => ({ kind: 'same', text: line }))
  const shown = all ? lines : lines.slice(0, LINES)
  return (
    <>
      <pre className={`${css.text} ${patch ? '' : css.numbered}`} tabIndex={0} role="region" aria-label={label}>
        {shown.map((line, i) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: lines of a fixed text
          <div key={i} data-kind={line.kind}>
            {line.text}
          </div>
        ))}
      </pre>
      {lines.length > shown.length && (
        <button type="button" className={css.file} onClick={() => setAll(true)}>
          {t('show_rest', { count: lines.length - shown.length })}
        </button>
      )}
    </>
  )
}
