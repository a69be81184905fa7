import { Select } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { ChevronsUpDown } from 'lucide-react'
import { useTranslation } from 'react-i18next'
import { projects } from '@/api/queries'
import { useProject } from '@/lib/project'
import css from './shell.module.css'

const ALL = '*'

export function ProjectPick() {
  const { t } = useTranslation()
  const { data = [] } = useQuery(projects)
  const [project, setProject] = useProject()
  const navigate = useNavigate()
  const choose = (value: string | null) => {
    setProject(value === ALL || !value ? '' : value)
    void navigate({ to: '/runs' })
  }
  return (
    <Select
      className={css.projectPick}
      aria-label={t('project')}
      mb={8}
      data={[{ value: ALL, label: t('all_projects') }, ...data.map((one) => ({ value: one.name, label: one.name }))]}
      value={project || ALL}
      onChange={choose}
      searchable={data.length > 8}
      allowDeselect={false}
      rightSection={<ChevronsUpDown size={14} aria-hidden />}
    />
  )
}
