/** What the pages read, as query options: one place for keys, paths and freshness. */

import { infiniteQueryOptions, keepPreviousData, queryOptions } from '@tanstack/react-query'
import { series } from './batch'
import { get, getText, seg, setCsrf } from './client'
import type * as T from './types'

export const me = queryOptions({
  queryKey: ['me'],
  queryFn: async () => {
    const who = await get<T.Me>('/me')
    setCsrf(who.csrf ?? '')
    return who
  },
  staleTime: 5 * 60_000,
  retry: false,
})

export const status = queryOptions({
  queryKey: ['status'],
  queryFn: ({ signal }) => get<T.StatusView>('/status', {}, signal),
  refetchInterval: 30_000,
})

export const projects = queryOptions({
  queryKey: ['projects'],
  queryFn: ({ signal }) => get<T.ProjectView[]>('/projects', {}, signal),
  staleTime: 30_000,
})

export interface RunsAsk {
  filter: string
  order: string
  descending: boolean
  project: string
  columns: string[]
}

export const PAGE = 100

export const runs = (ask: RunsAsk) =>
  infiniteQueryOptions({
    queryKey: ['runs', ask],
    queryFn: ({ pageParam, signal }) =>
      get<T.RunPage>(
        '/runs',
        {
          filter: ask.filter,
          order_by: ask.order,
          descending: ask.order ? ask.descending : undefined,
          limit: PAGE,
          cursor: pageParam,
          project: ask.project,
          columns: ask.columns.join(','),
        },
        signal,
      ),
    initialPageParam: '',
    getNextPageParam: (last) => last.next || undefined,
    placeholderData: keepPreviousData,
    retry: false,
  })

export const findRuns = (text: string) =>
  queryOptions({
    queryKey: ['runs', 'find', text],
    queryFn: ({ signal }) => get<T.RunPage>('/runs', { filter: findFilter(text), limit: 8 }, signal),
    enabled: text.length > 0,
    placeholderData: keepPreviousData,
    staleTime: 5_000,
    retry: false,
  })

/** Free text of the palette as a filter of the search language. */
export function findFilter(text: string): string {
  const quoted = `'${text.replaceAll("'", "''")}'`
  return `name has ${quoted} or ref has ${quoted} or tags has ${quoted}`
}

export const run = (id: string) =>
  queryOptions({
    queryKey: ['run', id, 'detail'],
    queryFn: ({ signal }) => get<T.RunDetail>(`/runs/${seg(id)}`, {}, signal),
    placeholderData: keepPreviousData,
    retry: (count, error) => count < 2 && (error as { status?: number }).status !== 404,
  })

export const events = (id: string) =>
  queryOptions({
    queryKey: ['run', id, 'events'],
    queryFn: ({ signal }) => get<T.EventView[]>(`/runs/${seg(id)}/events`, { limit: 500 }, signal),
    placeholderData: keepPreviousData,
  })

export const KEYS = 2000

export const keys = (id: string, search = '') =>
  queryOptions({
    queryKey: ['run', id, 'keys', search],
    queryFn: ({ signal }) => get<T.KeysReply>(`/runs/${seg(id)}/keys`, { search, limit: KEYS }, signal),
    placeholderData: keepPreviousData,
  })

export interface CurveAsk {
  run: string
  key: string
  x: 'step' | 'relative' | 'wall'
  from?: number | undefined
  to?: number | undefined
  allAttempts: boolean
  allRanks: boolean
}

export const curve = (ask: CurveAsk) =>
  queryOptions({
    queryKey: ['run', ask.run, 'series', ask],
    queryFn: () =>
      series({
        runs: [ask.run],
        key: ask.key,
        x: ask.x,
        buckets: 1000,
        all_attempts: ask.allAttempts,
        streams: ask.allRanks,
        ...(ask.from !== undefined ? { from: ask.from } : {}),
        ...(ask.to !== undefined ? { to: ask.to } : {}),
      }),
    placeholderData: keepPreviousData,
    staleTime: 2_000,
  })

export const artifacts = (id: string) =>
  queryOptions({
    queryKey: ['run', id, 'artifacts'],
    queryFn: ({ signal }) => get<T.ArtifactView[]>(`/runs/${seg(id)}/artifacts`, {}, signal),
  })

export const artifactText = (id: string, path: string) =>
  queryOptions({
    queryKey: ['run', id, 'artifact', path],
    queryFn: ({ signal }) => getText(`/runs/${seg(id)}/artifacts/content`, { path }, signal),
    staleTime: Number.POSITIVE_INFINITY,
  })

export const lineage = (id: string) =>
  queryOptions({
    queryKey: ['run', id, 'lineage'],
    queryFn: ({ signal }) => get<T.LineageView>(`/runs/${seg(id)}/lineage`, {}, signal),
  })

export const tree = (digest: string) =>
  infiniteQueryOptions({
    queryKey: ['tree', digest],
    queryFn: ({ pageParam, signal }) =>
      get<T.TreeView>(`/trees/${seg(digest)}`, { cursor: pageParam, limit: 1000 }, signal),
    initialPageParam: '',
    getNextPageParam: (last) => last.next || undefined,
    staleTime: Number.POSITIVE_INFINITY,
  })

export const treeText = (digest: string, path: string) =>
  queryOptions({
    queryKey: ['tree', digest, 'text', path],
    queryFn: ({ signal }) => getText(`/trees/${seg(digest)}/content`, { path }, signal),
    staleTime: Number.POSITIVE_INFINITY,
  })

export const nodes = queryOptions({
  queryKey: ['pool', 'nodes'],
  queryFn: ({ signal }) => get<T.NodeView[]>('/nodes', {}, signal),
  refetchInterval: 15_000,
})

export const queue = queryOptions({
  queryKey: ['pool', 'queue'],
  queryFn: ({ signal }) => get<T.QueueEntry[]>('/queue', {}, signal),
  refetchInterval: 15_000,
})

export const datasets = queryOptions({
  queryKey: ['datasets'],
  queryFn: ({ signal }) => get<T.DatasetView[]>('/datasets', {}, signal),
})

export const dataset = (name: string) =>
  queryOptions({
    queryKey: ['datasets', name],
    queryFn: ({ signal }) => get<T.DatasetView>(`/datasets/${seg(name)}`, {}, signal),
  })

export const models = queryOptions({
  queryKey: ['models'],
  queryFn: ({ signal }) => get<T.ModelView[]>('/models', {}, signal),
})

export const model = (name: string) =>
  queryOptions({
    queryKey: ['models', name],
    queryFn: ({ signal }) => get<T.ModelView>(`/models/${seg(name)}`, {}, signal),
  })

export const tokens = queryOptions({
  queryKey: ['tokens'],
  queryFn: ({ signal }) => get<T.TokenView[]>('/tokens', {}, signal),
})
