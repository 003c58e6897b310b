"""Small versions of the chat templates that models come with."""

CHATML = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
DEFAULT_SYSTEM = (
    "{%- if messages[0].role != 'system' -%}<|im_start|>system\nYou are helpful.<|im_end|>\n"
    "{% endif -%}" + CHATML
)
LLAMA3 = """\
{{- bos_token }}
{%- for message in messages %}
    {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n' }}
    {{- message['content'] | trim + '<|eot_id|>' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}
"""
LLAMA31 = """\
{{- bos_token }}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content'] | trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{{- "<|start_header_id|>system<|end_header_id|>\\n\\nCutting Knowledge Date: December 2023\\n\\n" }}
{{- system_message + "<|eot_id|>" }}
""" + LLAMA3.removeprefix("{{- bos_token }}\n")
GEMMA = """\
{{ bos_token }}
{%- if messages[0]['role'] == 'system' -%}
    {{ raise_exception('System role not supported') }}
{%- endif -%}
{% for message in messages %}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) -%}
        {{ raise_exception('Conversation roles must alternate user/assistant/user/...') }}
    {%- endif -%}
    {%- set role = 'model' if message['role'] == 'assistant' else message['role'] -%}
    {{ '<start_of_turn>' + role + '\n' + message['content'] | trim + '<end_of_turn>\n' }}
{%- endfor %}
{% if add_generation_prompt %}{{ '<start_of_turn>model\n' }}{% endif %}
"""
MISTRAL = (
    "{{ bos_token }}{% for m in messages %}{% if m['role'] == 'user' %}"
    "{{ '[INST] ' + m['content'] + ' [/INST]' }}{% elif m['role'] == 'assistant' %}"
    "{{ ' ' + m['content'] + eos_token }}{% else %}{{ raise_exception('no system') }}"
    "{% endif %}{% endfor %}"
)
LLAMA2 = """\
{%- if messages[0]['role'] == 'system' %}
    {%- set system = '<<SYS>>\\n' + messages[0]['content'] + '\\n<</SYS>>\\n\\n' %}
    {%- set messages = messages[1:] %}
{%- else %}{% set system = '' %}
{%- endif %}
{%- for m in messages %}
    {%- set content = system + m['content'] if loop.first else m['content'] %}
    {%- if m['role'] == 'user' %}{{ bos_token + '[INST] ' + content + ' [/INST]' }}
    {%- else %}{{ ' ' + content + ' ' + eos_token }}{% endif %}
{%- endfor %}
"""
PHI3 = (
    "{% for m in messages %}{{ '<|' + m['role'] + '|>\n' + m['content'] + '<|end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>\n' }}"
    "{% else %}{{ eos_token }}{% endif %}"
)
REASONING = """\
{%- set last = namespace(user=0) %}
{%- for m in messages %}{% if m.role == 'user' %}{% set last.user = loop.index0 %}{% endif %}
{%- endfor %}
{%- for m in messages %}
    {%- set content = m.content.split('</think>')[-1].lstrip('\\n') %}
    {{- '<|im_start|>' + m.role + '\\n' }}
    {%- if m.role == 'assistant' and loop.index0 > last.user %}{{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
    {{- content if m.role == 'assistant' else m.content }}
    {{- '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and not enable_thinking %}{{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
{%- endif %}
"""
NUMBERED = (
    "{% for m in messages %}Turn {{ loop.index }}, {{ m.role }}: {{ m.content }}\n{% endfor %}"
)
COUNTED = "{{ messages | length }} turns\n" + CHATML
TOOLS = "{% if tools %}{{ tools | tojson(indent=2) }}\n{% endif %}" + CHATML
ORDINARY = {
    "chatml": CHATML,
    "default_system": DEFAULT_SYSTEM,
    "llama3": LLAMA3,
    "llama31": LLAMA31,
    "gemma": GEMMA,
    "mistral": MISTRAL,
    "llama2": LLAMA2,
    "phi3": PHI3,
    "reasoning": REASONING,
}
