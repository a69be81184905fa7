/** What the pages read, as query options: one place for keys, paths and freshness. */

import { infiniteQueryOptions, keepPreviousData, queryOptions } from '@tanstack/react-query'
import { series } from './batch'
import { get, getText, seg, send, setCsrf } from './client'
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

export const COLUMNS = 300

/** Names of metrics, params and tags that runs of a project, or those that meet a filter, carry. */
export const columnNames = (project: string, search = '', filter = '', limit = COLUMNS) =>
  queryOptions({
    queryKey: ['columns', project, search, filter, limit],
    queryFn: ({ signal }) => get<T.ColumnsReply>('/run-columns', { project, search, filter, limit }, signal),
    placeholderData: keepPreviousData,
    staleTime: 60_000,
  })

export interface GroupsAsk {
  by: string[]
  metrics: string[]
  filter: string
  project: string
}

export const runGroups = (ask: GroupsAsk) =>
  queryOptions({
    queryKey: ['runs', 'groups', ask],
    queryFn: ({ signal }) =>
      get<T.GroupPage>(
        '/run-groups',
        { by: ask.by, metric: ask.metrics, filter: ask.filter, project: ask.project, limit: 1000 },
        signal,
      ),
    placeholderData: keepPreviousData,
    staleTime: 5_000,
    retry: false,
  })

const PART = 150

/** Some runs by id, with columns; more columns than one request takes come by several. */
export const runsOf = (ids: string[], columns: string[]) =>
  queryOptions({
    queryKey: ['runs', 'of', ids, columns],
    queryFn: async ({ signal }) => {
      const filter = idFilter(ids)
      const parts = Array.from({ length: Math.max(1, Math.ceil(columns.length / PART)) }, (_, i) =>
        columns.slice(i * PART, (i + 1) * PART),
      )
      const pages = await Promise.all(
        parts.map((some) => get<T.RunPage>('/runs', { filter, limit: ids.length, columns: some.join(',') }, signal)),
      )
      const found = new Map<string, T.RunView>()
      for (const run of pages.flatMap((page) => page.runs)) {
        const was = found.get(run.id)
        found.set(run.id, {
          ...run,
          params: { ...was?.params, ...run.params },
          metrics: { ...was?.metrics, ...run.metrics },
        })
      }
      return ids.flatMap((id) => found.get(id) ?? [])
    },
    enabled: ids.length > 0,
    placeholderData: keepPreviousData,
  })

export function idFilter(ids: string[]): string {
  return `id in (${ids.map((id) => `'${id.replaceAll("'", "''")}'`).join(', ')})`
}

export const views = (page: string, project: string) =>
  queryOptions({
    queryKey: ['views', page, project],
    queryFn: ({ signal }) => get<T.SavedView[]>('/views', { page, project }, signal),
    staleTime: 30_000,
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
  runs: string[]
  key: string
  /** step, relative, wall, or `metrics.KEY`. */
  x: string
  from?: number | undefined
  to?: number | undefined
  allAttempts: boolean
  allRanks: boolean
}

/** In the place of a run's id: answers over several runs. */
export const MANY = 'many'

export const curve = (ask: CurveAsk) =>
  queryOptions({
    queryKey: ['run', ask.runs.length === 1 ? ask.runs[0] : MANY, 'series', ask],
    queryFn: () =>
      series({
        runs: ask.runs,
        key: ask.key,
        x: ask.x,
        buckets: ask.runs.length > 20 ? 300 : ask.runs.length > 5 ? 600 : 1000,
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

export const templates = queryOptions({
  queryKey: ['templates'],
  queryFn: ({ signal }) => get<T.TemplateView[]>('/templates', {}, signal),
  staleTime: 30_000,
})

/** A run as the request that would make it again. */
export const cloneOf = (id: string) =>
  queryOptions({
    queryKey: ['run', id, 'clone'],
    queryFn: ({ signal }) => get<T.CloneView>(`/runs/${seg(id)}/clone`, {}, signal),
    staleTime: Number.POSITIVE_INFINITY,
    retry: false,
  })

export const steps = (id: string) =>
  queryOptions({
    queryKey: ['run', id, 'steps'],
    queryFn: ({ signal }) => get<T.StepsReply>(`/runs/${seg(id)}/steps`, {}, signal),
    staleTime: 10_000,
  })

export const docs = (id: string) =>
  queryOptions({
    queryKey: ['run', id, 'docs'],
    queryFn: ({ signal }) => get<T.Document[]>(`/runs/${seg(id)}/docs`, {}, signal),
    staleTime: Number.POSITIVE_INFINITY,
  })

export const doc = (id: string, path: string) =>
  queryOptions({
    queryKey: ['run', id, 'doc', path],
    queryFn: ({ signal }) => get<T.DocumentView>(`/runs/${seg(id)}/docs/content`, { path }, signal),
    staleTime: Number.POSITIVE_INFINITY,
    retry: false,
  })

const PACKING_MS = 5_000

/** One environment with its packs; asked for again while one of them is not done. */
export const environment = (digest: string) =>
  queryOptions({
    queryKey: ['environments', digest],
    queryFn: ({ signal }) => get<T.EnvironmentView>(`/environments/${seg(digest)}`, {}, signal),
    refetchInterval: ({ state }) =>
      state.data?.packs?.some((pack) => pack.state === 'wanted' || pack.state === 'building') ? PACKING_MS : false,
  })

export const environments = queryOptions({
  queryKey: ['environments'],
  queryFn: ({ signal }) => get<T.EnvironmentView[]>('/environments', {}, signal),
})

export const store = queryOptions({
  queryKey: ['store'],
  queryFn: ({ signal }) => get<T.StoreView>('/store', {}, signal),
  refetchInterval: 60_000,
})

export const doctor = queryOptions({
  queryKey: ['doctor'],
  queryFn: ({ signal }) => get<T.NodeCheck[]>('/doctor', {}, signal),
  refetchInterval: 60_000,
})

export const doctorHistory = (node: string, check: string) =>
  queryOptions({
    queryKey: ['doctor', node, check],
    queryFn: ({ signal }) => get<T.NodeCheck[]>('/doctor/history', { node, check, limit: 100 }, signal),
  })

/** Verdicts of the first group against the rest, by the runs' ids; metrics by name, none: those that the server picks. */
export const comparison = (runs: string[]) =>
  queryOptions({
    queryKey: ['comparison', runs],
    queryFn: () => send<T.Comparison>('POST', '/compare', { runs } satisfies T.CompareRequest),
    staleTime: 30_000,
    retry: false,
  })

export const comparisons = (id: string) =>
  queryOptions({
    queryKey: ['run', id, 'comparisons'],
    queryFn: ({ signal }) => get<T.GroupComparison[]>(`/runs/${seg(id)}/comparisons`, {}, signal),
  })

export const reviews = queryOptions({
  queryKey: ['reviews'],
  queryFn: ({ signal }) => get<T.ReviewView[]>('/reviews', {}, signal),
})

export const review = (id: string) =>
  queryOptions({
    queryKey: ['reviews', id],
    queryFn: ({ signal }) => get<T.ReviewView>(`/reviews/${seg(id)}`, {}, signal),
  })

export const protections = queryOptions({
  queryKey: ['protections'],
  queryFn: ({ signal }) => get<T.ProtectionView[]>('/protections', {}, signal),
})

export const conflicts = queryOptions({
  queryKey: ['conflicts'],
  queryFn: ({ signal }) => get<T.Conflict[]>('/conflicts', {}, signal),
})

export const triggers = queryOptions({
  queryKey: ['triggers'],
  queryFn: ({ signal }) => get<T.TriggerView[]>('/triggers', {}, signal),
})

export const deliveries = queryOptions({
  queryKey: ['deliveries'],
  queryFn: ({ signal }) => get<T.DeliveryView[]>('/deliveries', { limit: 50 }, signal),
  refetchInterval: 15_000,
})
