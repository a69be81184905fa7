import {
  CircleCheck, CircleDashed, CircleHelp, CirclePause, CirclePlay, CircleStop, CircleX, Clock, Hand, Package, Save,
} from 'lucide-react' // biome-ignore format: a list of names
import type { CSSProperties } from 'react'
import { word } from '@/i18n'
import { tone } from '@/lib/states'
import css from './ui.module.css'

const ICONS: Record<string, typeof Clock> = {
  draft: CircleDashed,
  preparing: Package,
  queued: Clock,
  waiting: Clock,
  held: Hand,
  starting: CirclePlay,
  assigned: CirclePlay,
  stopping: CircleStop,
  saving: Save,
  paused: CirclePause,
  finished: CircleCheck,
  done: CircleCheck,
  exited: CircleCheck,
  failed: CircleX,
  lost: CircleX,
  stopped: CircleStop,
  superseded: CircleStop,
  unknown: CircleHelp,
  suspect: CircleHelp,
  durable: CircleCheck,
  current: CircleCheck,
  staged: CircleDashed,
  ready: CircleCheck,
  free: CircleDashed,
  cordoned: Hand,
  draining: Clock,
}

/** A ring that fills with the share of steps done; it turns slowly while the share is not known. */
function Ring({ share }: { share: number | undefined }) {
  const length = 2 * Math.PI * 6
  const part = Math.max(0.04, Math.min(1, share ?? 0.3))
  return (
    <svg
      width="15"
      height="15"
      viewBox="0 0 16 16"
      className={share === undefined ? css.turning : undefined}
      aria-hidden
    >
      <circle cx="8" cy="8" r="6" fill="none" stroke="currentColor" strokeOpacity="0.28" strokeWidth="2.4" />
      <circle
        cx="8"
        cy="8"
        r="6"
        fill="none"
        stroke="currentColor"
        strokeWidth="2.4"
        strokeDasharray={`${length * part} ${length}`}
        transform="rotate(-90 8 8)"
        strokeLinecap="round"
      />
    </svg>
  )
}

export function StateIcon({ state, share }: { state: string; share?: number | undefined }) {
  if (state === 'running') return <Ring share={share} />
  const Icon = ICONS[state] ?? CircleHelp
  return <Icon size={15} aria-hidden />
}

interface Props {
  state: string
  kind?: 'state' | 'attempt_state' | 'stage_state' | 'checkpoint_state' | 'card_state' | 'node_state'
  share?: number | undefined
  pill?: boolean
}

/** Colour and icon and word, so that none of them carries the meaning alone. */
export function State({ state, kind = 'state', share, pill = false }: Props) {
  return (
    <span
      className={`${css.state} ${pill ? css.pill : ''}`}
      style={{ '--tone': `var(--tone-${tone(state)})` } as CSSProperties}
      data-state={state}
    >
      <StateIcon state={state} share={share} />
      {word(kind, state)}
    </span>
  )
}
