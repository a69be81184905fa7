import { Tooltip } from '@mantine/core'
import type { CSSProperties, ReactNode } from 'react'
import { shortDigest } from '@/lib/format'
import { Copyable } from './Copy'
import css from './ui.module.css'

export function Tag({ children }: { children: ReactNode }) {
  return <span className={`${css.tag} cut`}>{children}</span>
}

export function Kbd({ children }: { children: ReactNode }) {
  return <kbd className={css.kbd}>{children}</kbd>
}

/** Digests look alike: twelve digits to read, all of them to copy. */
export function Digest({ value }: { value: string | undefined }) {
  if (!value) return <span className="dim">–</span>
  return (
    <Tooltip label={value}>
      <span className="mono" style={{ display: 'inline-flex', maxWidth: '100%' }}>
        <Copyable text={value}>{shortDigest(value)}</Copyable>
      </span>
    </Tooltip>
  )
}

/** A long name keeps its ending: cut in the middle by CSS alone. */
export function Middle({ text, tail = 8 }: { text: string; tail?: number }) {
  if (text.length <= tail * 2) return <span className="cut">{text}</span>
  return (
    <span className={css.middle} title={text}>
      <span>{text.slice(0, -tail)}</span>
      <span>{text.slice(-tail)}</span>
    </span>
  )
}

/** A share between 0 and 1 as a bar. */
export function Bar({ share, tone = 'blue', label }: { share: number; tone?: string; label: string }) {
  const percent = Math.round(Math.max(0, Math.min(1, share)) * 100)
  return (
    <div
      className={css.bar}
      role="progressbar"
      aria-valuenow={percent}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-label={label}
    >
      <div style={{ width: `${percent}%`, '--tone': `var(--tone-${tone})` } as CSSProperties} />
    </div>
  )
}
