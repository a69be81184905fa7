import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'
import { keys as keysQuery } from '@/api/queries'
import type { KeyInfo } from '@/api/types'
import { measure, plain } from '@/lib/format'
import { Panel } from '@/ui/Blocks'
import css from './run.module.css'

const SHOWN = 6

interface Tile {
  name: string
  value: string
  note?: string
}

/** The numbers that people look for first: what the run said itself, then the last value of its metrics. */
export function Latest({ id, summary }: { id: string; summary: Record<string, unknown> }) {
  const { t } = useTranslation()
  const { data } = useQuery(keysQuery(id))
  const said: Tile[] = Object.entries(summary).map(([name, value]) => ({ name, value: plain(value) }))
  const all = data?.keys ?? []
  const own = all.filter((info) => !isSystem(info.key))
  const found = [...(own.length ? own : all)].sort((a, b) => weight(a) - weight(b))
  const tiles = [...said, ...found.map((info) => tileOf(info, t('best')))].slice(0, SHOWN)
  if (tiles.length === 0) return null
  return (
    <Panel
      title={t('latest')}
      actions={
        <Link to="/runs/$run/$tab" params={{ run: id, tab: 'metrics' }} style={{ fontSize: 13 }}>
          {t('all_charts')}
        </Link>
      }
      flush
    >
      <div className={css.tiles}>
        {tiles.map((tile) => (
          <div key={tile.name} className={css.tile}>
            <div className={`${css.name} cut`} title={tile.name}>
              {tile.name}
            </div>
            <div className={`${css.value} cut`} title={tile.value}>
              {tile.value}
            </div>
            <div className={`${css.name} num`}>{tile.note ?? '\u00a0'}</div>
          </div>
        ))}
      </div>
    </Panel>
  )
}

function tileOf(info: KeyInfo, best: string): Tile {
  const goal = info.definition?.goal
  const extreme =
    goal === 'max' ? info.max : goal === 'min' || /loss|ppl|perplexity|error/.test(info.key) ? info.min : undefined
  return {
    name: info.key,
    value: measure(info.key, info.last ?? 0),
    ...(extreme !== undefined && extreme !== null ? { note: `${best} ${measure(info.key, extreme)}` } : {}),
  }
}

function weight(info: KeyInfo): number {
  const declared = info.definition?.goal ? 0 : 10
  const loss = /loss/.test(info.key) ? 0 : 3
  return declared + loss
}

function isSystem(key: string): boolean {
  return /^(system|sys)\//.test(key)
}
