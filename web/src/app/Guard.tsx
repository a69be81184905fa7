import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useEffect } from 'react'
import { ApiError } from '@/api/client'
import { me } from '@/api/queries'
import { ErrorNote, Waiting } from '@/ui/Blocks'
import { Shell } from './shell/Shell'

/** Pages are for signed-in people; where one wanted to go is kept for after the login. */
export function Guard() {
  const { data, error } = useQuery(me)
  const navigate = useNavigate()
  const stranger = error instanceof ApiError && error.status === 401
  useEffect(() => {
    if (!stranger) return
    const { pathname, search, hash } = window.location
    const next = pathname === '/' || pathname === '/login' ? '' : `?next=${encodeURIComponent(pathname + search)}`
    void navigate({ href: `/login${next}${hash}`, replace: true })
  }, [stranger, navigate])
  if (data && !stranger) return <Shell />
  return <div style={{ padding: 24 }}>{error && !stranger ? <ErrorNote error={error} /> : <Waiting />}</div>
}
