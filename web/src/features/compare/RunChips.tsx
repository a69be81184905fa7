import { ActionIcon, Tooltip, useComputedColorScheme } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import { Flag, X } from 'lucide-react'
import { useTranslation } from 'react-i18next'
import type { RunView } from '@/api/types'
import { pen } from '@/lib/palette'
import { Middle } from '@/ui/Small'
import { StateIcon } from '@/ui/State'
import css from './compare.module.css'

interface Props {
  runs: RunView[]
  onRemove: (id: string) => void
  /** The first one is what the others are held against. */
  onFirst: (id: string) => void
}

/** The runs that are compared, each with the colour of its curves. */
export function RunChips({ runs, onRemove, onFirst }: Props) {
  const { t } = useTranslation()
  const dark = useComputedColorScheme('light') === 'dark'
  return (
    <ul className={css.chips} aria-label={t('compared_runs')}>
      {runs.map((run, i) => (
        <li key={run.id} className={css.chip} data-first={i === 0 || undefined}>
          <Swatch index={i} dark={dark} />
          <StateIcon state={run.state} />
          <Link to="/runs/$run" params={{ run: run.id }} className={css.chipName}>
            <Middle text={run.name || run.ref} />
            {run.name && <span className="dim"> {run.ref}</span>}
          </Link>
          {i === 0 ? (
            <Tooltip label={t('baseline')}>
              <Flag size={13} aria-label={t('baseline')} className="dim" />
            </Tooltip>
          ) : (
            <Tooltip label={t('baseline_make')}>
              <ActionIcon size="xs" aria-label={t('baseline_make')} onClick={() => onFirst(run.id)}>
                <Flag size={12} aria-hidden />
              </ActionIcon>
            </Tooltip>
          )}
          <ActionIcon size="xs" aria-label={t('compare_leave_out', { run: run.ref })} onClick={() => onRemove(run.id)}>
            <X size={13} aria-hidden />
          </ActionIcon>
        </li>
      ))}
    </ul>
  )
}

export function Swatch({ index, dark }: { index: number; dark: boolean }) {
  const { colour, dash } = pen(index, dark)
  return (
    <svg width="16" height="8" aria-hidden style={{ flex: 'none' }}>
      <line x1="0" y1="4" x2="16" y2="4" stroke={colour} strokeWidth="3" strokeDasharray={dash.join(' ')} />
    </svg>
  )
}
