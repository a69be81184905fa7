import { type ReactNode, useMemo } from 'react'
import { type Block, blocks, type Item, type Span, target } from '@/lib/markdown'
import css from './docs.module.css'

interface Props {
  text: string
  path: string
  /** Another file of the same tree. */
  onFile: (path: string) => void
}

/** A document of a tree, drawn from blocks: no HTML of its writer reaches the page. */
export function Markdown({ text, path, onFile }: Props) {
  const found = useMemo(() => blocks(text), [text])
  return <div className={css.text}>{found.map((block, i) => drawn(block, i, { path, onFile }))}</div>
}

type Place = Omit<Props, 'text'>

function drawn(block: Block, key: number, place: Place): ReactNode {
  if (block.kind === 'code')
    return (
      <pre key={key} tabIndex={0}>
        {block.text}
      </pre>
    )
  if (block.kind === 'rule') return <hr key={key} />
  if (block.kind === 'quote')
    return <blockquote key={key}>{block.blocks.map((inner, i) => drawn(inner, i, place))}</blockquote>
  if (block.kind === 'list') return <List key={key} items={block.items} place={place} />
  if (block.kind === 'table')
    return (
      <div key={key} className={css.table} tabIndex={0}>
        <table>
          <thead>
            <tr>{block.head.map((cell, i) => within('th', cell, i, place))}</tr>
          </thead>
          <tbody>
            {block.rows.map((row, i) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: a text does not move
              <tr key={i}>{row.map((cell, j) => within('td', cell, j, place))}</tr>
            ))}
          </tbody>
        </table>
      </div>
    )
  // the page and the panel have the first two levels
  if (block.kind === 'heading')
    return within(`h${Math.min(6, block.level + 2)}` as 'h3' | 'h4' | 'h5' | 'h6', block.spans, key, place)
  return within('p', block.spans, key, place)
}

function within(Name: 'p' | 'td' | 'th' | 'h3' | 'h4' | 'h5' | 'h6', inner: Span[], key: number, place: Place) {
  return (
    <Name key={key}>
      <Spans spans={inner} place={place} />
    </Name>
  )
}

function List({ items, place }: { items: Item[]; place: Place }) {
  return (
    <ul className={css.list}>
      {items.map((item, i) => (
        <li
          // biome-ignore lint/suspicious/noArrayIndexKey: a text does not move
          key={i}
          style={{ marginLeft: item.depth * 18 }}
          data-number={item.ordered ? ordinal(items, i) : undefined}
        >
          <Spans spans={item.spans} place={place} />
        </li>
      ))}
    </ul>
  )
}

/** Its place among the numbered items of the same depth before it. */
function ordinal(items: Item[], at: number): number {
  const { depth } = items[at]!
  let count = 1
  for (let i = at - 1; i >= 0 && items[i]!.depth >= depth; i--) if (items[i]!.depth === depth) count++
  return count
}

function Spans({ spans, place }: { spans: Span[]; place: Place }): ReactNode {
  return spans.map((span, i) => {
    if (span.kind === 'text') return span.text
    // biome-ignore-start lint/suspicious/noArrayIndexKey: a text does not move
    if (span.kind === 'code') return <code key={i}>{span.text}</code>
    const inner = <Spans spans={span.spans} place={place} />
    if (span.kind === 'strong') return <strong key={i}>{inner}</strong>
    if (span.kind === 'em') return <em key={i}>{inner}</em>
    const file = target(place.path, span.to)
    if (file)
      return (
        <button key={i} type="button" className={css.link} onClick={() => place.onFile(file)}>
          {inner}
        </button>
      )
    if (span.to.startsWith('#')) return <span key={i}>{inner}</span>
    return (
      <a key={i} href={span.to} target="_blank" rel="noopener noreferrer nofollow">
        {inner}
      </a>
    )
    // biome-ignore-end lint/suspicious/noArrayIndexKey: a text does not move
  })
}
