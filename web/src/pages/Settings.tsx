import { useTranslation } from 'react-i18next'
import { Account, Server } from '@/features/settings/Account'
import { Appearance } from '@/features/settings/Appearance'
import { Naming } from '@/features/settings/Naming'
import { Store } from '@/features/settings/Store'
import { Tokens } from '@/features/settings/Tokens'
import { Page } from '@/ui/Page'

export function Settings() {
  const { t } = useTranslation()
  return (
    <div style={{ maxWidth: 900 }}>
      <Page title={t('nav_settings')}>
        <Appearance />
        <Account />
        <Tokens />
        <Naming />
        <Store />
        <Server />
      </Page>
    </div>
  )
}
