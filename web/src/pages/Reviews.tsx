import { useTranslation } from 'react-i18next'
import { Reviews as List } from '@/features/reviews/Reviews'
import { Conflicts, Protections } from '@/features/reviews/Rules'
import { Deliveries, Triggers } from '@/features/reviews/Triggers'
import { Page } from '@/ui/Page'

/** What is done together: what is looked at before it counts, what collides, and what starts by itself. */
export function Reviews() {
  const { t } = useTranslation()
  return (
    <Page title={t('nav_reviews')} note={t('reviews_note')}>
      <List />
      <Conflicts />
      <Protections />
      <Triggers />
      <Deliveries />
    </Page>
  )
}
