/** One answer's whole story, from top to bottom as the turn ran. */

import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { get } from "../../api/http.ts";
import { LABELS, type Explanation } from "../../api/types.ts";
import { Json } from "../../parts/Json.tsx";
import { Loaded } from "../../parts/States.tsx";
import { actor, count, milliseconds, moment, percent, title, words } from "../../parts/format.ts";
import { useIsOwn } from "../../page/useIsOwn.ts";
import { ModelRequests } from "./ModelRequests.tsx";
import { Waterfall } from "./Waterfall.tsx";
import { spans, stationSpans } from "./spans.ts";

export function Why() {
  const { messageId } = useParams({ from: "/why/$messageId" });
  const explanation = useQuery({
    queryKey: ["explanation", messageId],
    queryFn: ({ signal }) => get<Explanation>(`/v1/messages/${messageId}/explanation`, {}, signal),
  });
  return (
    <main id="content" className="view" tabIndex={-1}>
      <h2>Why this answer?</h2>
      <Loaded query={explanation} what="the explanation">
        {(data) => <Story explanation={data} />}
      </Loaded>
    </main>
  );
}

function Story({ explanation }: { explanation: Explanation }) {
  const isOwn = useIsOwn(explanation.conversationId);
  const { conversationId, turn, state, error, attempts, message, answer, tools, steps, stations, modelRequests, previousMessageId, nextMessageId } = explanation;
  return (
    <>
      <p className="lead">
        Turn {turn} of{" "}
        <Link to="/chat/$conversationId" params={{ conversationId }}>
          this conversation
        </Link>
        , {moment(message.createdAt)}.
        {attempts > 1 && ` It took ${attempts} attempts.`}
        {state !== "completed" && state !== "done" && ` It is ${words(state)}.`}
        {error && ` It ended with the error "${words(error)}".`}
      </p>
      <nav className="turns" aria-label="Turns">
        {previousMessageId && (
          <Link to="/why/$messageId" params={{ messageId: previousMessageId }}>
            ← The turn before
          </Link>
        )}
        {nextMessageId && (
          <Link to="/why/$messageId" params={{ messageId: nextMessageId }}>
            The next turn →
          </Link>
        )}
        <Link to="/chat/$conversationId/blocks" params={{ conversationId }} search={{ turn }}>
          The blocks after this turn
        </Link>
      </nav>
      <ol className="story">
        <Station name={isOwn ? "You wrote" : "The person wrote"}>
          <blockquote className="question">{message.content}</blockquote>
        </Station>
        <Safety explanation={explanation} />
        <Understanding explanation={explanation} />
        <BlocksRead explanation={explanation} />
        <Memories explanation={explanation} />
        {tools.length > 0 && (
          <Station name="Tools">
            <ul className="rows">
              {tools.map((tool) => (
                <li key={tool.id}>
                  <b>{tool.toolName}</b>: {words(tool.status)}
                  {tool.milliseconds !== null && `, ${milliseconds(tool.milliseconds)}`}
                  <Json label="Arguments and result" value={{ arguments: tool.arguments, result: tool.result }} />
                </li>
              ))}
            </ul>
          </Station>
        )}
        <Answering explanation={explanation} />
        {modelRequests.length > 0 && (
          <Station name="What the model was sent">
            <ModelRequests requests={modelRequests} />
          </Station>
        )}
        <Station name="Answer">{answer ? <blockquote className="answer">{answer.content}</blockquote> : <p>There is no answer yet.</p>}</Station>
        <BlocksWritten explanation={explanation} />
        <Station name="Time">
          <Waterfall spans={stations.length > 0 ? stationSpans(stations) : spans(steps)} />
        </Station>
      </ol>
    </>
  );
}

interface StationProps {
  name: string;
  children: ReactNode;
}

function Station({ name, children }: StationProps) {
  return (
    <li className="station">
      <h3>{name}</h3>
      {children}
    </li>
  );
}

function Safety({ explanation: { safety } }: { explanation: Explanation }) {
  return (
    <Station name="Safety">
      {safety.length === 0 ? (
        <p>No sign of danger was found.</p>
      ) : (
        <ul className="rows">
          {safety.map((finding) => (
            <li key={finding.id} data-certainty={finding.certainty ?? "certain"}>
              <b>
                {title(finding.kind)}, {finding.certainty === "possible" ? "possible" : "certain"}
              </b>{" "}
              (tier {finding.tier}, {words(finding.stage)})
              {finding.rules.length > 0 && <small>Rules: {finding.rules.map(words).join(", ")}</small>}
              {finding.refused !== null && <small>A sentence was not sent: “{finding.refused}”</small>}
            </li>
          ))}
        </ul>
      )}
    </Station>
  );
}

function Understanding({ explanation: { understood } }: { explanation: Explanation }) {
  if (understood === null)
    return (
      <Station name="Understood as">
        <p>How the message was understood is not kept: a safety answer needs no more, or the revision was removed.</p>
      </Station>
    );
  const { enrichedMessage, previousContext, relevantHistory, intent, confidence, reasoning, specialist } = understood;
  return (
    <Station name="Understood as">
      {enrichedMessage && <blockquote>{enrichedMessage}</blockquote>}
      {previousContext && (
        <p>
          <span className="quiet-text">Because of what came before:</span> {previousContext}
        </p>
      )}
      {relevantHistory.length > 0 && (
        <ul className="plain">
          {relevantHistory.map((line) => (
            <li key={line}>{line}</li>
          ))}
        </ul>
      )}
      <dl className="pairs">
        <dt>Intent</dt>
        <dd>
          {intent ? title(intent.toLowerCase()) : "none"}
          {confidence !== null && `, ${percent(confidence)} sure`}
        </dd>
        {reasoning && (
          <>
            <dt>Reason</dt>
            <dd>{reasoning}</dd>
          </>
        )}
        <dt>Specialist</dt>
        <dd>{specialist ? actor(specialist) : "none"}</dd>
      </dl>
    </Station>
  );
}

function BlocksRead({ explanation }: { explanation: Explanation }) {
  return <Blocks name="Blocks that were read" explanation={explanation} wanted={(action) => action === "retrieved"} none="No block was read." />;
}

function BlocksWritten({ explanation }: { explanation: Explanation }) {
  return <Blocks name="Blocks that were written" explanation={explanation} wanted={(action) => action !== "retrieved"} none="No block was written." />;
}

interface BlocksProps {
  name: string;
  explanation: Explanation;
  wanted: (action: string) => boolean;
  none: string;
}

function Blocks({ name, explanation: { blocks }, wanted, none }: BlocksProps) {
  const used = LABELS.flatMap((label) => blocks.filter((block) => block.label === label && wanted(block.action)));
  return (
    <Station name={name}>
      {used.length === 0 ? (
        <p>{none}</p>
      ) : (
        <ul className="chips">
          {used.map((block) => (
            <li key={block.traceId}>
              {title(block.label)}
              {block.revision !== null && <small>revision {block.revision}</small>}
            </li>
          ))}
        </ul>
      )}
    </Station>
  );
}

function Memories({ explanation: { memories, retrievalId } }: { explanation: Explanation }) {
  return (
    <Station name="Memories">
      {memories.length === 0 ? (
        <p>No long-term memory was used. What was said in this conversation is in the blocks.</p>
      ) : (
        <ol className="rows memories">
          {memories.map((memory) => (
            <li key={memory.traceId}>
              <p>
                <Link to="/memory" search={{ id: memory.memoryId }}>
                  {memory.content}
                </Link>
              </p>
              <small>
                {memory.role && `${words(memory.role)}`}
                {memory.confidence !== null && ` · fits ${percent(memory.confidence)}`}
                {memory.memoryType && ` · ${words(memory.memoryType)}`}
              </small>
            </li>
          ))}
        </ol>
      )}
      {retrievalId && (
        <p>
          <Link to="/retrievals/$retrievalId" params={{ retrievalId }}>
            How these were chosen
          </Link>
        </p>
      )}
    </Station>
  );
}

function Answering({ explanation: { model, understood, prompt, promptRevision } }: { explanation: Explanation }) {
  const who = understood?.specialist ? actor(understood.specialist) : "The answer";
  return (
    <Station name="Who answered">
      {model === null ? (
        <p>{who}, without a language model.</p>
      ) : (
        <p>
          {who}, with {count(model.requests, "request")} to a model: {model.promptTokens.toLocaleString("en-GB")} tokens sent,{" "}
          {model.completionTokens.toLocaleString("en-GB")} received.
          {model.fallback && ` The model failed (${words(model.trouble ?? "unknown")}), so the answer was made without it.`}
          {!model.fallback && model.trouble && ` The answer broke off: ${words(model.trouble)}.`}
        </p>
      )}
      {prompt && (
        <p className="quiet-text">
          Prompt: {prompt}
          {promptRevision && `, revision ${promptRevision}`}
        </p>
      )}
    </Station>
  );
}
