import { spotlight } from '@mantine/spotlight'
import { Outlet, useNavigate } from '@tanstack/react-router'
import { useMemo, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { useLiveUpdates, useTopic } from '@/api/news'
import { useKeys } from '@/ui/keyboard'
import { Help } from './Help'
import { Palette } from './Palette'
import { Rail } from './Rail'
import css from './shell.module.css'
import { Top } from './Top'

export function Shell() {
  const { t } = useTranslation()
  const navigate = useNavigate()
  const [help, setHelp] = useState(false)
  useLiveUpdates()
  useTopic('runs')
  useTopic('queue')
  useKeys(
    useMemo(
      () => ({
        '?': () => setHelp(true),
        'g r': () => void navigate({ to: '/runs' }),
        'g q': () => void navigate({ to: '/pool' }),
        'g m': () => void navigate({ to: '/models' }),
        'g d': () => void navigate({ to: '/datasets' }),
      }),
      [navigate],
    ),
  )
  return (
    <div className={css.shell}>
      <a href="#main" className={css.skip}>
        {t('skip')}
      </a>
      <Rail />
      <div className={css.side}>
        <Top onSearch={spotlight.open} onHelp={() => setHelp(true)} />
        <main className={css.main} id="main">
          <Outlet />
        </main>
      </div>
      <Palette />
      <Help opened={help} onClose={() => setHelp(false)} />
    </div>
  )
}
