import { Link } from '@tanstack/react-router'
import type { CSSProperties } from 'react'
import { useTranslation } from 'react-i18next'
import type { NodeView } from '@/api/types'
import { size } from '@/lib/format'
import { tone } from '@/lib/states'
import { Panel } from '@/ui/Blocks'
import { State } from '@/ui/State'
import { Ago } from '@/ui/Time'
import css from './pool.module.css'

export interface Card {
  index?: number
  kind?: string
  memory_bytes?: number
  state?: string
  run?: string
  run_id?: string
  space?: string
}

/** A machine and each of its cards: state, holder, kind. */
export function Node({ node }: { node: NodeView }) {
  const { t } = useTranslation()
  const cards = (node.cards ?? []) as Card[]
  const held = cards.filter((card) => card.state === 'held').length
  return (
    <Panel
      title={
        <span style={{ display: 'inline-flex', gap: 14, alignItems: 'center' }}>
          {node.name} <State kind="node_state" state={node.state} />
        </span>
      }
      actions={
        <span className="dim num" style={{ fontSize: 13 }}>
          {t('node_cards', { held, total: cards.length })} · {t('seen')} <Ago us={node.contact_us} />
        </span>
      }
      flush
    >
      <div className={css.cards}>
        {cards.map((card) => (
          <CardTile key={card.index} card={card} />
        ))}
      </div>
    </Panel>
  )
}

function CardTile({ card }: { card: Card }) {
  const { t } = useTranslation()
  const state = card.state ?? 'unknown'
  const run = card.run ?? ''
  return (
    <div
      className={css.card}
      data-state={state}
      style={{ '--tone': `var(--tone-${state === 'held' ? 'blue' : tone(state)})` } as CSSProperties}
    >
      <div className={css.cardTop}>
        <span>
          {card.kind ?? ''} {card.index}
        </span>
        {card.memory_bytes ? <span>{size(card.memory_bytes)}</span> : null}
      </div>
      {run ? (
        <Link to="/runs/$run" params={{ run: card.run_id ?? run }} className="cut" title={run}>
          {run}
        </Link>
      ) : state === 'held' ? (
        <span className="dim">{t('held_elsewhere')}</span>
      ) : (
        <State kind="card_state" state={state} />
      )}
    </div>
  )
}
