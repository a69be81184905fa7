/**
 * Live news of the server: one stream for all tabs of the browser.
 *
 * The tab that holds the lock keeps the EventSource open and passes every message on by BroadcastChannel; the others say
 * which topics they need. When the stream is away the state is `polling` and pages ask again every ten seconds.
 */

export type LiveState = 'connecting' | 'live' | 'polling'

export interface Change {
  topic: string
  run_id?: string
  kind?: string
  step?: number
  points?: number
  lines?: number
  last?: Record<string, number | string>
}

type Note =
  | { type: 'change'; change: Change }
  | { type: 'state'; state: LiveState }
  | { type: 'want'; tab: string; topics: string[] }
  | { type: 'ask' }
  | { type: 'bye'; tab: string }

const HIDDEN_MS = 5 * 60_000

export class Live {
  state: LiveState = 'connecting'
  private readonly tab = crypto.randomUUID?.() ?? String(Math.random())
  private readonly channel = new BroadcastChannel('trackbed-live')
  private readonly wants = new Map<string, string[]>()
  private readonly listeners = new Set<(change: Change) => void>()
  private readonly stateListeners = new Set<() => void>()
  private mine = new Map<string, number>()
  private leader = false
  private queued = false
  private source: EventSource | null = null
  private open = ''
  private lastId = ''
  private release: (() => void) | null = null
  private hideTimer = 0
  private timer = 0

  constructor() {
    this.channel.onmessage = (event: MessageEvent<Note>) => this.hear(event.data)
    document.addEventListener('visibilitychange', () => this.visibility())
    window.addEventListener('pagehide', () => {
      this.channel.postMessage({ type: 'bye', tab: this.tab } satisfies Note)
      this.resign()
    })
    window.addEventListener('pageshow', (event) => event.persisted && this.campaign())
    this.campaign()
  }

  onChange(fn: (change: Change) => void): () => void {
    this.listeners.add(fn)
    return () => this.listeners.delete(fn)
  }

  onState = (fn: () => void): (() => void) => {
    this.stateListeners.add(fn)
    return () => this.stateListeners.delete(fn)
  }

  want(topic: string): () => void {
    this.mine.set(topic, (this.mine.get(topic) ?? 0) + 1)
    this.tell()
    return () => {
      const left = (this.mine.get(topic) ?? 1) - 1
      if (left > 0) this.mine.set(topic, left)
      else this.mine.delete(topic)
      this.tell()
    }
  }

  private campaign(): void {
    if (this.queued) return
    this.queued = true
    if (!navigator.locks) {
      this.lead()
      return
    }
    void navigator.locks.request('trackbed-live', () => {
      this.lead()
      return new Promise<void>((resolve) => {
        this.release = resolve
      })
    })
    this.channel.postMessage({ type: 'ask' } satisfies Note)
  }

  private lead(): void {
    this.leader = true
    this.channel.postMessage({ type: 'ask' } satisfies Note)
    this.tell()
  }

  private tell(): void {
    this.wants.set(this.tab, [...this.mine.keys()])
    if (this.leader) this.reopen()
    else this.channel.postMessage({ type: 'want', tab: this.tab, topics: [...this.mine.keys()] } satisfies Note)
  }

  private hear(note: Note): void {
    if (note.type === 'change') this.emit(note.change)
    else if (note.type === 'state') this.setState(note.state, false)
    else if (note.type === 'ask') {
      if (this.leader) this.channel.postMessage({ type: 'state', state: this.state } satisfies Note)
      else this.tell()
    } else if (this.leader) {
      if (note.type === 'want') this.wants.set(note.tab, note.topics)
      else this.wants.delete(note.tab)
      this.reopen()
    }
  }

  /** Opens the stream for the union of topics; a pause of a moment lets a page say all that it needs. */
  private reopen(): void {
    window.clearTimeout(this.timer)
    this.timer = window.setTimeout(() => {
      const topics = [...new Set([...this.wants.values()].flat())].sort().join(',')
      if (topics === this.open && this.source) return
      this.source?.close()
      this.source = null
      this.open = topics
      if (topics) this.connect(topics)
    }, 60)
  }

  private connect(topics: string): void {
    const after = this.lastId ? `&after=${encodeURIComponent(this.lastId)}` : ''
    const source = new EventSource(`/api/v1/stream?topics=${encodeURIComponent(topics)}${after}`)
    this.source = source
    source.onopen = () => this.setState('live', true)
    source.addEventListener('change', (event) => {
      if (event.lastEventId) this.lastId = event.lastEventId
      try {
        const change = JSON.parse(event.data) as Change
        this.emit(change)
        this.channel.postMessage({ type: 'change', change } satisfies Note)
      } catch {
        // not ours
      }
    })
    // Too much was missed to be told one by one: everything on the page is asked for anew.
    source.addEventListener('reset', (event) => {
      this.lastId = event.lastEventId || this.lastId
      const change: Change = { topic: 'reset' }
      this.emit(change)
      this.channel.postMessage({ type: 'change', change } satisfies Note)
    })
    source.onerror = () => {
      this.setState('polling', true)
      if (source.readyState === EventSource.CLOSED && this.source === source) {
        this.source = null
        window.setTimeout(() => this.leader && !this.source && this.open === topics && this.connect(topics), 5000)
      }
    }
  }

  private visibility(): void {
    window.clearTimeout(this.hideTimer)
    if (document.hidden) {
      this.hideTimer = window.setTimeout(() => this.resign(), HIDDEN_MS)
    } else {
      this.campaign()
    }
  }

  /** Hand the stream to another tab: this one is hidden, or left. */
  private resign(): void {
    if (!this.leader) return
    this.source?.close()
    this.source = null
    this.leader = false
    this.queued = false
    this.release?.()
    this.release = null
  }

  private emit(change: Change): void {
    for (const fn of this.listeners) fn(change)
  }

  private setState(state: LiveState, tell: boolean): void {
    if (tell) this.channel.postMessage({ type: 'state', state } satisfies Note)
    if (state === this.state) return
    this.state = state
    for (const fn of this.stateListeners) fn()
  }
}
