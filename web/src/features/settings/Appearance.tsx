import { SegmentedControl, useMantineColorScheme } from '@mantine/core'
import { useTranslation } from 'react-i18next'
import { lang, setLang } from '@/i18n'
import { Facts, Panel } from '@/ui/Blocks'

export function Appearance() {
  const { t } = useTranslation()
  const { colorScheme, setColorScheme } = useMantineColorScheme()
  return (
    <Panel title={t('appearance')}>
      <Facts
        rows={[
          [
            t('theme'),
            <SegmentedControl
              key="theme"
              aria-label={t('theme')}
              value={colorScheme}
              onChange={(value) => setColorScheme(value as 'light' | 'dark' | 'auto')}
              data={[
                { value: 'auto', label: t('theme_auto') },
                { value: 'light', label: t('theme_light') },
                { value: 'dark', label: t('theme_dark') },
              ]}
            />,
          ],
          [
            t('language'),
            <SegmentedControl
              key="language"
              aria-label={t('language')}
              value={lang()}
              onChange={(value) => void setLang(value as 'en' | 'zh')}
              data={[
                { value: 'en', label: 'English' },
                { value: 'zh', label: '中文' },
              ]}
            />,
          ],
        ]}
      />
    </Panel>
  )
}
