import { Link } from '@tanstack/react-router'
import { Box } from 'lucide-react'
import { useTranslation } from 'react-i18next'
import type { RunDetail } from '@/api/types'
import { word } from '@/i18n'
import { cardHours, duration, size } from '@/lib/format'
import { Facts, Panel } from '@/ui/Blocks'

export function Registered({ detail }: { detail: RunDetail }) {
  const { t } = useTranslation()
  const models = detail.models ?? []
  if (models.length === 0) return null
  return (
    <Panel title={t('registered')}>
      {models.map((ref) => (
        <div key={ref} style={{ display: 'flex', alignItems: 'center', gap: 8 }}>
          <Box size={15} aria-hidden />
          <Link to="/models/$name" params={{ name: ref.split('@')[0]! }}>
            {ref}
          </Link>
        </div>
      ))}
    </Panel>
  )
}

/** What was asked for and what it took. */
export function Cost({ detail }: { detail: RunDetail }) {
  const { t } = useTranslation()
  const { run, spec } = detail
  if (run.outside) return null // asked for no cards and took none
  const res = spec.resources ?? {}
  const waited = run.queued_us && run.started_us ? (run.started_us - run.queued_us) / 1e6 : undefined
  return (
    <Panel title={t('cost')}>
      <Facts
        rows={[
          [
            t('col_card_hours'),
            <b key="c" className="num">
              {cardHours(run.card_seconds ?? 0)}
            </b>,
          ],
          [t('waited'), waited !== undefined && waited >= 0 ? duration(waited) : undefined],
          [t('col_cards'), t('cards_shape', { count: run.cards ?? 0, nodes: res.nodes ?? 1 })],
          [t('card_kind'), res.kind && res.kind !== 'any' ? res.kind : undefined],
          [t('card_memory'), res.card_memory_bytes ? size(res.card_memory_bytes) : undefined],
          [t('time_limit'), res.time_limit_s ? duration(res.time_limit_s) : undefined],
          [t('col_priority'), word('priority', run.priority ?? 'normal')],
          [
            t('launcher'),
            <span key="l" className="mono">
              {spec.launcher ?? 'rank_per_card'}
            </span>,
          ],
        ]}
      />
    </Panel>
  )
}
