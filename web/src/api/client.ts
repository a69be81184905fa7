/** One way to the server: JSON in and out, problems as ApiError, the session cookie with its anti-forgery word. */

import type { FaultView, Problem } from './types'

export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    readonly params: Record<string, unknown> = {},
    readonly faults: FaultView[] = [],
  ) {
    super(code)
  }
}

let csrf = ''

export function setCsrf(word: string): void {
  csrf = word
}

type Value = string | number | boolean | undefined | null

/** A list is sent as its name several times. */
export type Query = Record<string, Value | string[]>

export function url(path: string, query: Query = {}): string {
  const parts = Object.entries(query)
    .flatMap(([key, value]): [string, Value][] =>
      Array.isArray(value) ? value.map((one) => [key, one]) : [[key, value]],
    )
    .filter(([, value]) => value !== undefined && value !== null && value !== '')
    .map(([key, value]) => `${encodeURIComponent(key)}=${encodeURIComponent(String(value))}`)
  return `/api/v1${path}${parts.length ? `?${parts.join('&')}` : ''}`
}

/** A segment of a path: `#`, `/` and spaces in names stay what they are. */
export const seg = encodeURIComponent

interface Options {
  query?: Query
  body?: unknown
  signal?: AbortSignal
}

async function raw(method: string, path: string, options: Options = {}): Promise<Response> {
  const headers: Record<string, string> = { Accept: 'application/json' }
  if (options.body !== undefined) headers['Content-Type'] = 'application/json'
  if (method !== 'GET' && csrf) headers['X-Trackbed-CSRF'] = csrf
  let reply: Response
  try {
    reply = await fetch(url(path, options.query), {
      method,
      headers,
      credentials: 'same-origin',
      ...(options.body !== undefined ? { body: JSON.stringify(options.body) } : {}),
      ...(options.signal ? { signal: options.signal } : {}),
    })
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error
    throw new ApiError(0, 'web.unreachable')
  }
  if (!reply.ok) throw await problem(reply)
  return reply
}

async function problem(reply: Response): Promise<ApiError> {
  try {
    const body = (await reply.json()) as Problem
    if (body.code) return new ApiError(reply.status, body.code, body.params ?? {}, body.faults ?? [])
  } catch {
    // not a problem document: a proxy or a crash answered
  }
  return new ApiError(reply.status, 'web.strange_answer', { status: reply.status })
}

export async function get<T>(path: string, query?: Query, signal?: AbortSignal): Promise<T> {
  const reply = await raw('GET', path, { ...(query ? { query } : {}), ...(signal ? { signal } : {}) })
  return (await reply.json()) as T
}

export async function getText(path: string, query?: Query, signal?: AbortSignal): Promise<string> {
  return (await raw('GET', path, { ...(query ? { query } : {}), ...(signal ? { signal } : {}) })).text()
}

export async function send<T>(method: 'POST' | 'PUT' | 'PATCH' | 'DELETE', path: string, body?: unknown): Promise<T> {
  const reply = await raw(method, path, body === undefined ? {} : { body })
  const text = await reply.text()
  return (text ? JSON.parse(text) : undefined) as T
}
