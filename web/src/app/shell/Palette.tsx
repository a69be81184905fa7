import { useMantineColorScheme } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { Spotlight, type SpotlightActionData, type SpotlightActionGroupData } from '@mantine/spotlight'
import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { Box, Cpu, Database, Languages, Rows3, Search, Settings, SunMoon } from 'lucide-react'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { datasets, findRuns, models } from '@/api/queries'
import type { RunView } from '@/api/types'
import { lang, setLang, word } from '@/i18n'
import { StateIcon } from '@/ui/State'

/** Ctrl-K: go anywhere by name. Runs are searched on the server, the rest is at hand. */
export function Palette() {
  const { t } = useTranslation()
  const navigate = useNavigate()
  const { toggleColorScheme } = useMantineColorScheme()
  const [query, setQuery] = useState('')
  const [asked] = useDebouncedValue(query.trim(), 150)
  const found = useQuery(findRuns(asked))
  const modelList = useQuery({ ...models, enabled: asked.length > 0 })
  const dataList = useQuery({ ...datasets, enabled: asked.length > 0 })
  const go = (id: string, label: string, icon: typeof Box, to: string): SpotlightActionData => {
    const Icon = icon
    return { id, label, leftSection: <Icon size={16} aria-hidden />, onClick: () => void navigate({ to }) }
  }
  const runAction = (run: RunView): SpotlightActionData => ({
    id: run.id,
    label: run.name || run.ref,
    description: `${run.ref} · ${word('state', run.state)}`,
    keywords: [run.id, run.ref, asked],
    leftSection: <StateIcon state={run.state} />,
    onClick: () => void navigate({ to: '/runs/$run', params: { run: run.id } }),
  })
  const groups: SpotlightActionGroupData[] = [
    { group: t('nav_runs'), actions: asked ? (found.data?.runs ?? []).map(runAction) : [] },
    {
      group: t('palette_go'),
      actions: [
        go('runs', t('nav_runs'), Rows3, '/runs'),
        go('pool', t('nav_pool'), Cpu, '/pool'),
        go('datasets', t('nav_datasets'), Database, '/datasets'),
        go('models', t('nav_models'), Box, '/models'),
        go('settings', t('nav_settings'), Settings, '/settings'),
        ...(modelList.data ?? []).map((one) =>
          go(`model ${one.name}`, one.name, Box, `/models/${encodeURIComponent(one.name)}`),
        ),
        ...(dataList.data ?? []).map((one) =>
          go(`data ${one.name}`, one.name, Database, `/datasets/${encodeURIComponent(one.name)}`),
        ),
      ],
    },
    {
      group: t('palette_do'),
      actions: [
        {
          id: 'theme',
          label: t('switch_theme'),
          leftSection: <SunMoon size={16} aria-hidden />,
          onClick: () => toggleColorScheme(),
        },
        {
          id: 'language',
          label: t('switch_language'),
          leftSection: <Languages size={16} aria-hidden />,
          onClick: () => void setLang(lang() === 'zh' ? 'en' : 'zh'),
        },
      ],
    },
  ]
  return (
    <Spotlight
      attributes={{ content: { 'aria-label': t('search_label') } }}
      actions={groups}
      query={query}
      onQueryChange={setQuery}
      shortcut={['mod + K']}
      tagsToIgnore={[]} // from the filter box too
      nothingFound={t('palette_nothing')}
      highlightQuery={false}
      scrollable
      maxHeight={420}
      searchProps={{
        leftSection: <Search size={16} aria-hidden />,
        placeholder: t('palette_hint'),
        'aria-label': t('palette_hint'),
      }}
    />
  )
}
