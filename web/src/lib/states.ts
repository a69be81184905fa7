/** Which verbs a run allows where it stands, as the state table of the server has it; and what colour a state has. */

export type Verb = 'stop' | 'pause' | 'resume' | 'retry' | 'hold' | 'release'
export type Tone = 'blue' | 'green' | 'red' | 'amber' | 'violet' | 'cyan' | 'grey' | 'orange'

const TONES: Record<string, Tone> = {
  draft: 'grey',
  preparing: 'cyan',
  queued: 'amber',
  held: 'grey',
  starting: 'cyan',
  running: 'blue',
  stopping: 'orange',
  paused: 'violet',
  finished: 'green',
  failed: 'red',
  stopped: 'grey',
  // attempts, stages, checkpoints, cards, nodes
  assigned: 'cyan',
  saving: 'cyan',
  exited: 'grey',
  superseded: 'grey',
  waiting: 'amber',
  done: 'green',
  staged: 'amber',
  durable: 'grey',
  current: 'green',
  free: 'green',
  unknown: 'orange',
  cordoned: 'grey',
  ready: 'green',
  suspect: 'orange',
  draining: 'amber',
  lost: 'red',
}

export function tone(state: string): Tone {
  return TONES[state] ?? 'grey'
}

const VERBS: Record<string, Verb[]> = {
  preparing: ['stop'],
  queued: ['stop', 'hold'],
  held: ['release', 'stop'],
  starting: ['pause', 'stop'],
  running: ['pause', 'stop'],
  paused: ['resume', 'stop'],
  failed: ['retry', 'resume'],
  stopped: ['resume', 'retry'],
}

export function verbs(state: string, outside: boolean): Verb[] {
  return outside ? [] : (VERBS[state] ?? [])
}

export function isLive(state: string): boolean {
  return !['finished', 'failed', 'stopped', 'paused', 'held', 'draft'].includes(state)
}

export function isTerminal(state: string): boolean {
  return ['finished', 'failed', 'stopped'].includes(state)
}
