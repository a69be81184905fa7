import { createRootRoute, createRoute, createRouter, lazyRouteComponent, Navigate } from '@tanstack/react-router'
import {
  type CompareSearch,
  type NewSearch,
  type RunSearch,
  type RunsSearch,
  readCompare,
  readNew,
  readRun,
  readRuns,
} from '@/lib/search'
import { Login } from '@/pages/Login'
import { Failed, Lost } from './Failed'
import { Guard } from './Guard'

const root = createRootRoute({ notFoundComponent: Lost, errorComponent: Failed })
const login = createRoute({ getParentRoute: () => root, path: '/login', component: Login })
const inside = createRoute({ getParentRoute: () => root, id: 'inside', component: Guard })
const home = createRoute({
  getParentRoute: () => inside,
  path: '/',
  component: () => <Navigate to="/runs" replace />,
})
const runs = createRoute({
  getParentRoute: () => inside,
  path: '/runs',
  validateSearch: (raw: Record<string, unknown>): RunsSearch => readRuns(raw),
  component: lazyRouteComponent(() => import('@/pages/Runs'), 'Runs'),
})
const runPage = lazyRouteComponent(() => import('@/pages/Run'), 'Run')
const run = createRoute({
  getParentRoute: () => inside,
  path: '/runs/$run',
  validateSearch: (raw: Record<string, unknown>): RunSearch => readRun(raw),
  component: runPage,
})
const runTab = createRoute({
  getParentRoute: () => inside,
  path: '/runs/$run/$tab',
  validateSearch: (raw: Record<string, unknown>): RunSearch => readRun(raw),
  component: runPage,
})
const compare = createRoute({
  getParentRoute: () => inside,
  path: '/compare',
  validateSearch: (raw: Record<string, unknown>): CompareSearch => readCompare(raw),
  component: lazyRouteComponent(() => import('@/pages/Compare'), 'Compare'),
})
const diff = createRoute({
  getParentRoute: () => inside,
  path: '/diff/$a/$b',
  validateSearch: (raw: Record<string, unknown>): CompareSearch => readCompare(raw),
  component: lazyRouteComponent(() => import('@/pages/Diff'), 'Diff'),
})
const newRun = createRoute({
  getParentRoute: () => inside,
  path: '/new',
  validateSearch: (raw: Record<string, unknown>): NewSearch => readNew(raw),
  component: lazyRouteComponent(() => import('@/pages/NewRun'), 'NewRun'),
})
const pool = createRoute({
  getParentRoute: () => inside,
  path: '/pool',
  component: lazyRouteComponent(() => import('@/pages/Pool'), 'Pool'),
})
const datasets = createRoute({
  getParentRoute: () => inside,
  path: '/datasets',
  component: lazyRouteComponent(() => import('@/pages/Datasets'), 'Datasets'),
})
const dataset = createRoute({
  getParentRoute: () => inside,
  path: '/datasets/$name',
  component: lazyRouteComponent(() => import('@/pages/Dataset'), 'Dataset'),
})
const models = createRoute({
  getParentRoute: () => inside,
  path: '/models',
  component: lazyRouteComponent(() => import('@/pages/Models'), 'Models'),
})
const model = createRoute({
  getParentRoute: () => inside,
  path: '/models/$name',
  component: lazyRouteComponent(() => import('@/pages/Model'), 'Model'),
})
const reviews = createRoute({
  getParentRoute: () => inside,
  path: '/reviews',
  component: lazyRouteComponent(() => import('@/pages/Reviews'), 'Reviews'),
})
const settings = createRoute({
  getParentRoute: () => inside,
  path: '/settings',
  component: lazyRouteComponent(() => import('@/pages/Settings'), 'Settings'),
})

export const router = createRouter({
  routeTree: root.addChildren([
    login,
    inside.addChildren([
      home,
      runs,
      run,
      runTab,
      compare,
      diff,
      newRun,
      pool,
      datasets,
      dataset,
      models,
      model,
      reviews,
      settings,
    ]),
  ]),
  // Plain `a=b&c=d`: people read, shorten and send these addresses.
  parseSearch: (text) => Object.fromEntries(new URLSearchParams(text)),
  stringifySearch: (search) => {
    const kept = Object.entries(search).filter(([, value]) => value !== undefined && value !== '')
    const text = new URLSearchParams(kept.map(([key, value]) => [key, String(value)])).toString()
    return text ? `?${text}` : ''
  },
  defaultPreload: 'intent',
  scrollRestoration: false,
})

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router
  }
}
