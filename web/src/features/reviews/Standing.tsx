import { useTranslation } from 'react-i18next'
import type { ReviewView } from '@/api/types'

const TONES = { open: 'amber', approved: 'green', rejected: 'red', withdrawn: 'grey' } as const

export function Standing({ review }: { review: ReviewView }) {
  const { t } = useTranslation()
  return <b style={{ fontWeight: 500, color: `var(--tone-${TONES[review.state]})` }}>{t(`review_${review.state}`)}</b>
}
