import { Button, Tooltip } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { type CSSProperties, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { events as eventsQuery } from '@/api/queries'
import type { EventView, RunDetail } from '@/api/types'
import { known, locale, sentence, word } from '@/i18n'
import { clock, moment } from '@/lib/format'
import { tone } from '@/lib/states'
import { Async, Panel } from '@/ui/Blocks'
import css from './run.module.css'

const SHOWN = 12

/** Everything that happened to the run, newest first, with who and why. */
export function Events({ detail }: { detail: RunDetail }) {
  const id = detail.run.id
  const { t } = useTranslation()
  const query = useQuery(eventsQuery(id))
  const [all, setAll] = useState(false)
  return (
    <Panel title={t('events')} flush>
      <Async query={query}>
        {(events) => {
          const names = new Map((detail.attempts ?? []).map((attempt) => [attempt.id, String(attempt.number)]))
          const newest = grouped(events, names).reverse()
          const shown = all ? newest : newest.slice(0, SHOWN)
          return (
            <>
              <ul className={css.events}>
                {shown.map((group) => (
                  <Line key={group.event.id} {...group} />
                ))}
              </ul>
              {newest.length > shown.length && (
                <Button variant="subtle" m={10} mt={0} onClick={() => setAll(true)}>
                  {t('events_more', { count: newest.length - shown.length })}
                </Button>
              )}
            </>
          )
        }}
      </Async>
    </Panel>
  )
}

interface Group {
  event: EventView
  text: string
  times: number
}

/** The same sentence many times in a row is said once, with its count; attempts are called by their number. */
function grouped(events: EventView[], names: Map<string, string>): Group[] {
  const groups: Group[] = []
  for (const event of events) {
    const text = eventText(event).replace(/att_[a-z0-9]+/g, (id) => names.get(id) ?? id)
    const last = groups.at(-1)
    if (last?.text === text) groups[groups.length - 1] = { event, text, times: last.times + 1 }
    else groups.push({ event, text, times: 1 })
  }
  return groups
}

function Line({ event, text, times }: Group) {
  const state = stateOf(event)
  return (
    <li style={{ '--tone': state ? `var(--tone-${tone(state)})` : 'var(--line-strong)' } as CSSProperties}>
      <Tooltip label={moment(event.time_us, locale())}>
        <time className="num dim">{clock(event.time_us, locale())}</time>
      </Tooltip>
      <i aria-hidden />
      <span>
        {text}
        {times > 1 && <span className="dim num"> ×{times}</span>}
        {isPerson(event.actor) && <span className="dim"> · {event.actor}</span>}
      </span>
    </li>
  )
}

/** Loops and supervisors act too; only people are named. */
function isPerson(actor: string): boolean {
  return actor !== '' && !/^att_|^(system|schedule|limits|watch)$|#/.test(actor)
}

function stateOf(event: EventView): string {
  const to = event.data?.to ?? event.data?.state
  return typeof to === 'string' ? to : ''
}

/** The sentence of an event; its values are shown in words where they are states or causes. */
export function eventText(event: EventView): string {
  const values: Record<string, unknown> = { ...event.data, subject: event.subject, attempt: event.attempt }
  for (const name of ['to', 'from', 'state'])
    if (typeof values[name] === 'string') values[name] = word('state', values[name] as string)
  if (typeof values.cause === 'string') values.cause = word('cause', values.cause)
  const code = `event.${event.kind}`
  if (known(code)) return sentence(code, values)
  const rest = Object.entries(event.data ?? {}).map(([name, value]) => `${name} ${String(value)}`)
  return [event.kind, ...rest].join(' · ')
}
