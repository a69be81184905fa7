import { Button } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'
import { Empty, ErrorNote } from '@/ui/Blocks'

/** A page that broke: what it said, and the way out. */
export function Failed({ error }: { error: unknown }) {
  const { t } = useTranslation()
  return (
    <div style={{ maxWidth: 620, margin: '64px auto', padding: 20 }}>
      <ErrorNote error={error} />
      <Button mt={16} variant="default" onClick={() => window.location.reload()}>
        {t('reload')}
      </Button>
    </div>
  )
}

export function Lost() {
  const { t } = useTranslation()
  return (
    <Empty title={t('lost_title')}>
      <Link to="/runs">{t('lost_way')}</Link>
    </Empty>
  )
}
