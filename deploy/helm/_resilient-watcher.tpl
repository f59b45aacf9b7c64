{{- /*
A native sidecar for the pod template of any chart:

  initContainers:
    {{- include "resilient-watcher.sidecar" (dict
      "image" "resilient-watcher:0.1.0"
      "volume" "conf"
      "path" "/etc/nginx/conf.d"
      "args" (list "--signal=HUP" "--process=nginx")) | nindent 4 }}

Lint what the chart renders: helm template . | resilient-watcher doctor --manifest -
*/ -}}
{{- define "resilient-watcher.sidecar" -}}
- name: reload
  image: {{ .image | quote }}
  restartPolicy: Always
  args:
    - watch
    - {{ .path | quote }}
    {{- range .args }}
    - {{ . | quote }}
    {{- end }}
  securityContext:
    allowPrivilegeEscalation: false
    readOnlyRootFilesystem: true
    capabilities:
      drop: [ALL]
  volumeMounts:
    - name: {{ .volume | quote }}
      mountPath: {{ .path | quote }}
      readOnly: true
{{- end }}
