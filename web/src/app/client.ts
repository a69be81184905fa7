import { QueryCache, QueryClient } from '@tanstack/react-query'
import { ApiError } from '@/api/client'
import { me } from '@/api/queries'

/** A dead session is found out by whichever question meets it first. */
const cache = new QueryCache({
  onError: (error, query) => {
    if (error instanceof ApiError && error.status === 401 && query.queryKey[0] !== 'me')
      void client.invalidateQueries({ queryKey: me.queryKey })
  },
})

export const client = new QueryClient({
  queryCache: cache,
  defaultOptions: {
    queries: {
      staleTime: 1000,
      refetchOnWindowFocus: true,
      retry: (count, error) => count < 2 && !(error instanceof ApiError && error.status >= 400 && error.status < 500),
    },
  },
})
