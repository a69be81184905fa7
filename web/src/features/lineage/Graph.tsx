import { useTranslation } from 'react-i18next'
import type { LineageView } from '@/api/types'
import type { Key } from '@/i18n'
import { Middle } from '@/ui/Small'
import { End, labelOf, parse } from './End'
import { type Box, ends, layout } from './layout'
import css from './lineage.module.css'

const WIDTH = 200
const HEIGHT = 52
const DX = 270
const DY = 68

const KINDS: Record<string, Key> = {
  run: 'kind_run',
  data: 'kind_data',
  model: 'kind_model',
  tree: 'kind_tree',
  checkpoint: 'kind_checkpoint',
}

/** Boxes and arrows in columns: what it came from, what it is, what came of it. */
export function Graph({ view }: { view: LineageView }) {
  const { t } = useTranslation()
  const { boxes, columns, rows } = layout(view)
  const place = new Map(boxes.map((box) => [box.id, box]))
  const size = { width: (columns - 1) * DX + WIDTH, height: (rows - 1) * DY + HEIGHT }
  return (
    <div
      className={css.graph}
      style={{ height: size.height + 32 }}
      tabIndex={0}
      role="group"
      aria-label={t('tab_lineage')}
    >
      <svg {...size} aria-hidden>
        {(view.edges ?? []).map((edge) => {
          const [a, b] = ends(edge).map((id) => place.get(id))
          return a && b ? (
            <path
              key={`${edge.source}${edge.kind}${edge.target}`}
              d={path(a, b)}
              fill="none"
              stroke="var(--line-strong)"
              strokeWidth="1.5"
            />
          ) : null
        })}
      </svg>
      {boxes.map((box) => {
        const kind = KINDS[parse(box.id).kind]
        return (
          <End
            key={box.id}
            id={box.id}
            label=""
            className={css.box}
            root={box.id === view.root}
            style={{ left: 16 + box.column * DX, top: 16 + box.row * DY }}
          >
            <small>{kind ? t(kind) : parse(box.id).kind}</small>
            <Middle text={labelOf(view, box.id)} tail={6} />
          </End>
        )
      })}
    </div>
  )
}

function path(from: Box, to: Box): string {
  const [x1, y1] = [from.column * DX + WIDTH, from.row * DY + HEIGHT / 2]
  const [x2, y2] = [to.column * DX, to.row * DY + HEIGHT / 2]
  const bend = Math.max(24, Math.abs(x2 - x1) / 2)
  return `M${x1} ${y1} C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`
}
