import { ActionIcon, Menu, Tooltip, UnstyledButton } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { CircleHelp, CircleUser, Languages, LogOut, Search, Settings } from 'lucide-react'
import { useTranslation } from 'react-i18next'
import { me } from '@/api/queries'
import { useSignOut } from '@/api/session'
import { lang, setLang } from '@/i18n'
import { Kbd } from '@/ui/Small'
import { Crumbs } from './Crumbs'
import { LiveDot } from './LiveDot'
import css from './shell.module.css'
import { ThemeButton } from './ThemeButton'

interface Props {
  onSearch: () => void
  onHelp: () => void
}

export function Top({ onSearch, onHelp }: Props) {
  const { t } = useTranslation()
  return (
    <header className={css.top}>
      <Crumbs />
      <LiveDot />
      <UnstyledButton className={css.search} onClick={onSearch}>
        <Search size={14} aria-hidden />
        <span>{t('search')}</span>
        <Kbd>Ctrl K</Kbd>
      </UnstyledButton>
      <Tooltip label={t('shortcuts')}>
        <ActionIcon aria-label={t('shortcuts')} onClick={onHelp}>
          <CircleHelp size={17} aria-hidden />
        </ActionIcon>
      </Tooltip>
      <Tooltip label={lang() === 'zh' ? 'English' : '中文'}>
        <ActionIcon aria-label={t('switch_language')} onClick={() => void setLang(lang() === 'zh' ? 'en' : 'zh')}>
          <Languages size={17} aria-hidden />
        </ActionIcon>
      </Tooltip>
      <ThemeButton />
      <UserMenu />
    </header>
  )
}

function UserMenu() {
  const { t } = useTranslation()
  const { data } = useQuery(me)
  const navigate = useNavigate()
  const signOut = useSignOut()
  return (
    <Menu position="bottom-end" width={200}>
      <Menu.Target>
        <ActionIcon aria-label={t('account')}>
          <CircleUser size={18} aria-hidden />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>
          {data?.name} {data?.admin && `· ${t('admin')}`}
        </Menu.Label>
        <Menu.Item leftSection={<Settings size={14} aria-hidden />} onClick={() => void navigate({ to: '/settings' })}>
          {t('nav_settings')}
        </Menu.Item>
        <Menu.Item leftSection={<LogOut size={14} aria-hidden />} onClick={signOut}>
          {t('sign_out')}
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  )
}
