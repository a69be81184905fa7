import { useQueryClient } from '@tanstack/react-query'
import { send, setCsrf } from './client'
import { me } from './queries'
import type { Me } from './types'

/** Redeem the one-time code of a login link, or a token. */
export async function signIn(code: string): Promise<Me> {
  const who = await send<Me>('POST', '/login', { code })
  setCsrf(who.csrf ?? '')
  return who
}

export function useSignOut(): () => void {
  const client = useQueryClient()
  return () => {
    void send('POST', '/logout').finally(() => {
      setCsrf('')
      client.removeQueries({ queryKey: me.queryKey })
      window.location.assign('/login')
    })
  }
}

/** The code in `…/login#code=…`: it stays out of server logs because a fragment never leaves the browser. */
export function codeOf(hash: string): string {
  return new URLSearchParams(hash.replace(/^#/, '')).get('code') ?? ''
}
