import { useQuery } from '@tanstack/react-query'
import { Navigate, useLocation } from '@tanstack/react-router'
import { ApiError } from '@/api/client'
import { me } from '@/api/queries'
import { ErrorNote, Waiting } from '@/ui/Blocks'
import { Shell } from './shell/Shell'

/** Pages are for signed-in people; where one wanted to go is kept for after the login. */
export function Guard() {
  const { data, error } = useQuery(me)
  const { href } = useLocation()
  if (error instanceof ApiError && error.status === 401) {
    const next = href === '/' || href.startsWith('/login') ? '' : href
    return <Navigate to="/login" search={next ? { next } : {}} hash={window.location.hash.slice(1)} replace />
  }
  if (data) return <Shell />
  return <div style={{ padding: 24 }}>{error ? <ErrorNote error={error} /> : <Waiting />}</div>
}
