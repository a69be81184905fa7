import { Button } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { reviews as reviewsQuery } from '@/api/queries'
import type { ReviewView } from '@/api/types'
import { Async, Empty, Panel } from '@/ui/Blocks'
import { Table } from '@/ui/Table'
import { Ago } from '@/ui/Time'
import { ReviewOpen } from './ReviewOpen'
import { Standing } from './Standing'

export function Reviews() {
  const { t } = useTranslation()
  const query = useQuery(reviewsQuery)
  const [open, setOpen] = useState('')
  return (
    <>
      <Panel title={t('reviews')} flush>
        <Async query={query}>
          {(list) =>
            list.length === 0 ? (
              <Empty title={t('reviews_none')}>{t('reviews_none_how')}</Empty>
            ) : (
              <Table
                label={t('reviews')}
                rows={list}
                rowKey={(review) => review.id}
                columns={[
                  {
                    id: 'title',
                    title: t('name'),
                    cell: (review) => (
                      <Button variant="subtle" size="compact-sm" onClick={() => setOpen(review.id)}>
                        {review.title || review.id}
                      </Button>
                    ),
                  },
                  { id: 'state', title: t('col_state'), cell: (review) => <Standing review={review} /> },
                  { id: 'approvals', title: t('review_missing'), right: true, cell: (review) => review.needed || '–' },
                  { id: 'items', title: t('review_items'), cell: (review) => <Items review={review} /> },
                  { id: 'author', title: t('review_author'), cell: (review) => review.author },
                  { id: 'branch', title: t('branch'), cell: (review) => review.branch },
                  { id: 'when', title: t('col_when'), right: true, cell: (review) => <Ago us={review.created_us} /> },
                ]}
              />
            )
          }
        </Async>
      </Panel>
      {open && <ReviewOpen id={open} onClose={() => setOpen('')} />}
    </>
  )
}

function Items({ review }: { review: ReviewView }) {
  const items = review.items ?? []
  return (
    <span className="mono">
      {items
        .slice(0, 3)
        .map((item) => item.subject)
        .join(', ')}
      {items.length > 3 && ` +${items.length - 3}`}
    </span>
  )
}
