import { Button, Modal, Textarea } from '@mantine/core'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { seg, send } from '@/api/client'
import { conflicts, me, review as reviewQuery, reviews } from '@/api/queries'
import type { FileDiff, ReviewView, ReviewWord, WordRequest } from '@/api/types'
import { Async, ErrorNote, Facts } from '@/ui/Blocks'
import { Ago } from '@/ui/Time'
import css from './reviews.module.css'
import { Standing } from './Standing'

type Decision = ReviewWord['decision']

/** One review: what it is of, line by line, what was said, and what may be said. */
export function ReviewOpen({ id, onClose }: { id: string; onClose: () => void }) {
  const query = useQuery(reviewQuery(id))
  return (
    <Modal opened onClose={onClose} title={query.data?.title || id} size="min(1100px, 95vw)">
      <Async query={query}>{(review) => <Body review={review} />}</Async>
    </Modal>
  )
}

function Body({ review }: { review: ReviewView }) {
  const { t } = useTranslation()
  return (
    <div className={css.stack} data-review={review.id}>
      <Facts
        rows={[
          [t('col_state'), <Standing key="s" review={review} />],
          [t('review_author'), review.author],
          [t('branch'), review.branch],
          [t('commit'), review.commit && <span className="mono">{review.commit.slice(0, 12)}</span>],
          [t('protection_who'), (review.approvers ?? []).join(', ') || t('anybody')],
          [t('col_when'), review.created_us ? <Ago key="w" us={review.created_us} /> : undefined],
        ]}
      />
      {review.description && <p className={css.said}>{review.description}</p>}
      <h3 className={css.title}>{t('review_items')}</h3>
      <ul className={css.items}>
        {(review.items ?? []).map((item) => (
          <li key={`${item.kind} ${item.subject}`}>
            <span className="dim">{t(`subject_${item.kind}`)}</span> <span className="mono">{item.subject}</span>
          </li>
        ))}
      </ul>
      {(review.files ?? []).map((file) => (
        <File key={file.path} file={file} />
      ))}
      {(review.words ?? []).length > 0 && <h3 className={css.title}>{t('review_words')}</h3>}
      {(review.words ?? []).map((word) => (
        <div key={`${word.person} ${word.time_us}`} className={css.said}>
          <b>{word.person}</b> {t(`review_${word.decision}`)}{' '}
          <span className="dim">
            <Ago us={word.time_us} />
          </span>
          {word.text && <div>{word.text}</div>}
        </div>
      ))}
      <Say review={review} />
    </div>
  )
}

function File({ file }: { file: FileDiff }) {
  const { t } = useTranslation()
  return (
    <details open>
      <summary className="mono">
        {file.path_before && file.path_before !== file.path ? `${file.path_before} → ${file.path}` : file.path}{' '}
        <span className="dim">
          +{file.added ?? 0} −{file.removed ?? 0}
        </span>
      </summary>
      {file.unshown ? (
        <p className="dim">{t('review_unshown')}</p>
      ) : (
        <pre className={css.diff} tabIndex={0}>
          {(file.lines ?? []).map(([op, before, after, text], i) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: the lines of a diff do not move
            <div key={i} data-op={op}>
              <i>{before || ''}</i>
              <i>{after || ''}</i>
              {op === '@' ? '…' : `${op}${text ?? ''}`}
            </div>
          ))}
        </pre>
      )}
    </details>
  )
}

/** Every word goes with the digest that was read: a decision holds for nothing else. */
function Say({ review }: { review: ReviewView }) {
  const { t } = useTranslation()
  const client = useQueryClient()
  const who = useQuery(me)
  const [text, setText] = useState('')
  const say = useMutation({
    mutationFn: (decision: Decision) =>
      send<ReviewView>('POST', `/reviews/${seg(review.id)}/${decision}`, {
        digest: review.digest ?? '',
        text,
      } satisfies WordRequest),
    onSuccess: async () => {
      setText('')
      await Promise.all(
        [reviews.queryKey, conflicts.queryKey].map((queryKey) => client.invalidateQueries({ queryKey })),
      )
    },
  })
  const own = who.data?.name === review.author
  const open = review.state === 'open'
  const button = (decision: Decision, variant = 'default') => (
    <Button
      variant={variant}
      loading={say.isPending && say.variables === decision}
      onClick={() => say.mutate(decision)}
    >
      {t(`review_${decision}`)}
    </Button>
  )
  if (!open) return null
  return (
    <div className={css.stack}>
      <Textarea
        label={t('review_text')}
        value={text}
        autosize
        minRows={2}
        onChange={(event) => setText(event.currentTarget.value)}
      />
      {say.error && <ErrorNote error={say.error} />}
      <div className={css.verbs}>
        {!own && button('approve', 'filled')}
        {!own && button('reject')}
        {button('comment')}
        {own && button('withdraw')}
      </div>
    </div>
  )
}
