import { Button, PasswordInput } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useCallback, useEffect, useRef, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { me } from '@/api/queries'
import { codeOf, signIn } from '@/api/session'
import { ErrorNote } from '@/ui/Blocks'
import { Command } from '@/ui/Copy'
import css from './login.module.css'

/** Opens a one-time link by itself; else takes a token. */
export function Login() {
  const { t } = useTranslation()
  const [code, setCode] = useState('')
  const { busy, error, enter } = useEnter()
  const redeemed = useRef(false)
  useEffect(() => {
    const given = codeOf(window.location.hash)
    if (!given || redeemed.current) return
    redeemed.current = true
    window.history.replaceState(null, '', window.location.pathname + window.location.search)
    void enter(given)
  }, [enter])
  return (
    <main className={css.login}>
      <form
        className={css.card}
        onSubmit={(event) => {
          event.preventDefault()
          if (code.trim()) void enter(code.trim())
        }}
      >
        <img src="/favicon.svg" width={36} height={36} alt="" />
        <h1>{t('login_title')}</h1>
        <p className="dim">{t('login_how')}</p>
        <PasswordInput
          label={t('login_token')}
          placeholder="tbp_…"
          size="sm"
          value={code}
          onChange={(event) => setCode(event.currentTarget.value)}
          autoComplete="current-password"
          visibilityToggleButtonProps={{ 'aria-label': t('login_show') }}
          data-autofocus
        />
        {Boolean(error) && (
          <div style={{ marginTop: 12 }}>
            <ErrorNote error={error} />
          </div>
        )}
        <Button type="submit" size="sm" fullWidth mt={14} loading={busy} disabled={!code.trim() && !busy}>
          {t('login_enter')}
        </Button>
        <p className={css.how}>{t('login_link_how')}</p>
        <Command text="trackbed people link NAME" />
      </form>
    </main>
  )
}

function useEnter() {
  const client = useQueryClient()
  const navigate = useNavigate()
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>(null)
  const enter = useCallback(
    async (code: string) => {
      setBusy(true)
      setError(null)
      try {
        client.setQueryData(me.queryKey, await signIn(code))
        const next = new URLSearchParams(window.location.search).get('next') ?? ''
        await navigate({ href: next.startsWith('/') && !next.startsWith('//') ? next : '/runs', replace: true })
      } catch (failure) {
        setError(failure)
      } finally {
        setBusy(false)
      }
    },
    [client, navigate],
  )
  return { busy, error, enter }
}
