def test_it(toy):
    r = toy.post("/generate", {"text":"Hello world, phloem", "sampling_params":{"max_new_tokens":5}})
    print(r.status_code, r.text)
    r = toy.post("/generate", {"text":["Hello world, phloem","b"], "sampling_params":{"max_new_tokens":3},"stream":True, "return_logprob":True,"top_logprobs_num":1,"logprob_start_len":0,"return_text_in_logprobs":True})
    print(r.status_code, r.text, r.headers)
    r = toy.post("/v1/completions", {"prompt":"Hello world, phloem", "max_tokens":3, "echo":True, "logprobs":1})
    print(r.status_code, r.text)
    r = toy.post("/v1/chat/completions", {"messages":[{"role":"user","content":"hi tree"}], "max_tokens":30, "stream":True,"n":2,"stream_options":{"include_usage":True}, "zork":1})
    print(r.status_code, r.text, r.headers)
    for p in ("/health","/v1/models","/v1/models/x","/server_info","/model_info","/metrics","/version","/openapi.json","/zork", "/health_generate"):
        r = toy.get(p); print(p, r.status_code, r.text[:1500])
    r = toy.post("/v1/chat/completions", {"messages":[{"role":"user","content":"hi tree"}], "max_tokens":"a"}); print(r.text)
    r = toy.post("/v1/chat/completions", {"max_tokens":3}); print(r.text)
    r = toy.post("/tokenize", {"prompt":"abc"}); print(r.text)
    r = toy.post("/detokenize", {"tokens":[40,41]}); print(r.text)
    assert 0
